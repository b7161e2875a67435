"""spanloop: dynamics of chains, trees and closed loops, compiled for the mechanism at hand."""

from __future__ import annotations
