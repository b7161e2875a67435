"""Mechanisms that run in the page, as WebAssembly."""
