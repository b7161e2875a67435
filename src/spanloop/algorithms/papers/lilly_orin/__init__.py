"""Lilly & Orin: simulation of simple closed chains, m chains on one reference member, in O(mN)."""
