"""From names to numbers: the mechanism that algorithms sweep over."""

from spanloop.topology.loop_report import loops_in_words
from spanloop.topology.mechanism import Link, Mechanism, mechanism

__all__ = ["Link", "Mechanism", "loops_in_words", "mechanism"]
