"""Integrators: one file for each step of fixed length, and SciPy's adaptive ones."""

from spanloop.simulation.integrators.integrator import Integrator

__all__ = ["Integrator"]
