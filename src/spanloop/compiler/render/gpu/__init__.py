"""Plans as LLVM text for NVIDIA GPUs."""
