// Stands in for the CUDA runtime's header of this name; see cuda_runtime.h beside it.
#include "cuda_runtime.h"
