"""The live viewer in the browser, built on viser: pose, play, simulate; and record a run to one file."""

from spanloop.view.viewer.recording import record
from spanloop.view.viewer.viewer import Viewer, show

__all__ = ["Viewer", "record", "show"]
