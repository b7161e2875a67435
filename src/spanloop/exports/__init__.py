"""Kernels and motions that leave Python: C99, FMU, WebAssembly."""
