"""`sl.flexible`: bodies that bend."""

from spanloop.flexible.beam import Beam
from spanloop.flexible.beam_input import beam
from spanloop.flexible.body import FlexibleBody, FlexibleNode
from spanloop.flexible.sections import Section, box, circle, rectangle, tube

__all__ = ["Beam", "FlexibleBody", "FlexibleNode", "Section", "beam", "box", "circle", "rectangle", "tube"]
