"""The live viewer in the browser, with viser: posing, playing, simulating; and recording to one file."""

from spanloop.view.viewer.recording import record
from spanloop.view.viewer.show import show
from spanloop.view.viewer.viewer import Viewer

__all__ = ["Viewer", "record", "show"]
