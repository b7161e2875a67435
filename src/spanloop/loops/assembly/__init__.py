"""Positions that close the loops: assembly near a guess, with the least strain, and along a path."""
