"""Kernels on NVIDIA GPUs: the driver, memory, launches."""
