"""Derivatives of the dynamics: all of those of trees, and along closed motions."""
