"""Algorithms as data: sweeps over a tree, and the walk that carries them out."""

from spanloop.sweeps.program import INWARD, OUTWARD, Program, Sweep, Union, Values, inward, outward
from spanloop.sweeps.walk import walk

__all__ = ["INWARD", "OUTWARD", "Program", "Sweep", "Union", "Values", "inward", "outward", "walk"]
