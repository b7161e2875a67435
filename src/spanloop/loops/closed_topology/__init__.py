"""A closed topology of two systems and the closures between and within them, each step a kernel of its own."""

from spanloop.loops.closed_topology.topology import ClosedTopology

__all__ = ["ClosedTopology"]
