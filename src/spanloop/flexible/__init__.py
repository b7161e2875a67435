"""`sl.flexible`: bodies that bend."""

from typing import Any

from spanloop.flexible.beam import Beam
from spanloop.flexible.beam_input import beam
from spanloop.flexible.body import FlexibleBody, FlexibleNode
from spanloop.flexible.files.formats.sid import ModalData
from spanloop.flexible.files.load import load, load_modal
from spanloop.flexible.finite_element_body import FiniteElementBody
from spanloop.flexible.finite_elements import FiniteElements
from spanloop.flexible.matrices.matrix_input import from_matrices
from spanloop.flexible.modal.modal_body import from_modal
from spanloop.flexible.nodal_model import to_matrices
from spanloop.flexible.sections import Section, box, circle, rectangle, tube

__all__ = [
    "Beam",
    "FiniteElementBody",
    "FiniteElements",
    "FlexibleBody",
    "FlexibleNode",
    "ModalData",
    "Section",
    "beam",
    "box",
    "circle",
    "fewer",
    "from_matrices",
    "from_modal",
    "load",
    "load_modal",
    "rectangle",
    "to_matrices",
    "tube",
]


def __getattr__(name: str) -> Any:
    """`fewer` needs the dynamics of a model, a room below: found when it is asked for."""
    if name != "fewer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from spanloop.dynamics.fewer_modes import fewer

    return fewer
