"""Dynamics: a model's kernels behind plain calls. Kernels compile on first use and are kept on disk."""

from spanloop.dynamics.dynamics import Dynamics

__all__ = ["Dynamics"]
