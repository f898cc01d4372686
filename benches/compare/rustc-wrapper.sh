#!/bin/sh
# Builds every crate with the flags given, but ninfer-codec for any x86-64 CPU: it finds the CPU's features at
# run time, and its portable code must not profit from flags its users do not set.
case " $* " in
*" --crate-name ninfer_codec "*) exec "$@" -Ctarget-cpu=x86-64 ;;
*) exec "$@" ;;
esac
