"""From source text to callables: machine code, disk cache, calls from Python, batches."""
