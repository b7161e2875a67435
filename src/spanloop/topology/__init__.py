"""From names to numbers: the mechanism that algorithms sweep over."""

from spanloop.topology.mechanism import Link, Mechanism, mechanism

__all__ = ["Link", "Mechanism", "mechanism"]
