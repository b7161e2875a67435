"""Is a motion to be trusted? Integrals over samples, energy and momentum against their causes, limits, the words."""
