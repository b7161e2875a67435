"""Where a part is attached that names a flexible body itself: at its root."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from spanloop.model.parts import WORLD, Frame

if TYPE_CHECKING:
    from spanloop.model.model import Model


def on_root(model: Model, frame: Frame) -> Frame:
    """The frame at the root of a flexible body, for the frame of the body itself; any other frame as it is."""
    if frame.body == WORLD or any(frame.placement.position):
        return frame
    joint = model.joints[model.body_number[frame.body] - 1]
    if not joint.kind.bends:
        return frame
    return replace(frame, body=joint.parent, placement=joint.placement @ frame.placement)
