"""From a traced computation to machine code: trace, lower, render, run. Knows nothing of mechanics."""
