"""Audit of a motion: balances of energy and momentum, closures, limits, with integrals over samples."""
