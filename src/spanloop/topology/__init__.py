"""From names to numbers: the mechanism that algorithms sweep over."""

from spanloop.topology.mechanism import Link, Mechanism, mechanism
from spanloop.topology.report import loops_in_words

__all__ = ["Link", "Mechanism", "loops_in_words", "mechanism"]
