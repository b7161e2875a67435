"""`sl.flexible`: bodies that bend."""

from spanloop.flexible.beam import Beam
from spanloop.flexible.beam_input import beam
from spanloop.flexible.body import FlexibleBody, FlexibleNode
from spanloop.flexible.files.formats.sid import ModalData
from spanloop.flexible.files.load import load, load_modal
from spanloop.flexible.finite_elements import FiniteElements
from spanloop.flexible.sections import Section, box, circle, rectangle, tube

__all__ = [
    "Beam",
    "FiniteElements",
    "FlexibleBody",
    "FlexibleNode",
    "ModalData",
    "Section",
    "beam",
    "box",
    "circle",
    "load",
    "load_modal",
    "rectangle",
    "tube",
]
