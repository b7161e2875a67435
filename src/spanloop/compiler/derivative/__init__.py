"""Derivatives of traced numbers, as traced numbers of the same graph: forward and reverse."""

from spanloop.compiler.derivative.forward import directional, tangents
from spanloop.compiler.derivative.reverse import pullback

__all__ = ["directional", "pullback", "tangents"]
