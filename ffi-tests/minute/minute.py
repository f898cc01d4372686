import numpy as np
import ninfer_codec  # ffi-tests/python, over libninfer_codec.so

tensor = ninfer_codec.Tensor("W8G32_F16S", (2, 2))
tensor.quantize(np.array([[0.5, -1.0], [0.25, 2.0]], np.float32))
tensor.validate()
row = tensor.decode(rows=range(1, 2))
print("%.8f %.7f" % tuple(row[0]))  # 0.25195312 1.9998779
