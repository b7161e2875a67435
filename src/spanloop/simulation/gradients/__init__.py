"""Gradients of runs: adjoint (one loss, any number of inputs) and forward (every sample, a few inputs)."""
