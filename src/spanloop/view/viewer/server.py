"""The viser server: start, camera, stop; an error explains how to install it."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

from spanloop.errors import UnsupportedError
from spanloop.view.viewer.camera import Camera

LOOPBACK = "127.0.0.1"


def start_server(port: int = 0, label: str = "spanloop") -> Any:
    """Start a server that only this machine can reach; port 0 takes a free one."""
    try:
        import viser
    except ImportError:
        raise UnsupportedError(
            "the live viewer needs viser, which is not installed; try: pip install 'spanloop[viewer]'"
        ) from None
    with quiet():
        server = viser.ViserServer(host=LOOPBACK, port=port, label=label, verbose=False)
    server.gui.configure_theme(control_width="medium", show_logo=False, show_share_button=False)
    server.gui.main_panel.dock_right()
    return server


def set_camera(server: Any, camera: Camera, up: np.ndarray) -> None:
    """Set the initial camera of every client."""
    server.initial_camera.position = tuple(map(float, camera.position))
    server.initial_camera.look_at = tuple(map(float, camera.target))
    server.initial_camera.up = tuple(map(float, up))


def stop_server(server: Any) -> None:
    """Close the server and its connections."""
    with quiet():
        server.stop()


def quiet() -> Any:
    """Suppress what viser prints."""
    return contextlib.redirect_stdout(io.StringIO())
