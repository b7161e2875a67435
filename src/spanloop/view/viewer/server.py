"""The viser server: start, camera, stop; an error explains how to install it.

Web pages that the user visits must not reach the viewer. A request passes if its Host is this machine with the server's
port (other names can be pointed at 127.0.0.1 by whoever owns them) and its Origin, if there is one, is the viewer's own
page. All others, also WebSockets, get 403.
"""

from __future__ import annotations

import contextlib
import http
import io
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from spanloop.errors import InputError, UnsupportedError
from spanloop.view.viewer.camera import Camera

LOOPBACK = "127.0.0.1"
NAMES = (LOOPBACK, "localhost")  # of this machine, as a browser may write them
_starting = threading.Lock()


def start_server(port: int = 0, label: str = "spanloop") -> Any:
    """Start a server that only this machine can reach; port 0 takes a free one."""
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise InputError(f"show: port is {port!r}; expected a whole number from 0 (a free one) to 65535")
    try:
        import viser
    except ImportError:
        raise UnsupportedError("the live viewer needs viser, which is not installed; try: pip install viser") from None
    with quiet(), _guarded() as guarded:
        server = viser.ViserServer(host=LOOPBACK, port=port, label=label, verbose=False)
    if not guarded:
        stop_server(server)
        raise UnsupportedError(
            f"viser {viser.__version__} starts its server in a way that spanloop does not know, so requests of other "
            "web pages would not be refused; try: pip install 'viser==1.1.1'"
        )
    server.gui.configure_theme(control_width="medium", show_logo=False, show_share_button=False)
    server.gui.main_panel.dock_right()
    return server


def is_allowed(hosts: list[str], origins: list[str], port: int) -> bool:
    """Whether a request with these Host and Origin headers comes from the viewer's own page or from no page at all."""
    if len(hosts) != 1 or hosts[0].lower() not in [f"{name}:{port}" for name in NAMES]:
        return False
    return not origins or [o.lower() for o in origins] == [f"http://{hosts[0].lower()}"]


@contextlib.contextmanager
def _guarded() -> Iterator[list[str]]:
    """Servers of websockets that are started meanwhile check Host and Origin; the list holds their hosts."""
    import websockets.asyncio.server as websocket_server

    begin, started = websocket_server.serve, list[str]()

    def serve(handler: Any, host: str, port: int, *, process_request: Any, **options: Any) -> Any:
        started.append(host)
        return begin(handler, host, port, process_request=_checked(process_request), **options)

    with _starting:
        websocket_server.serve = serve  # type: ignore[assignment, misc]
        try:
            yield started
        finally:
            websocket_server.serve = begin  # type: ignore[misc]


def _checked(answer: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The handler of requests, with 403 for those that are not allowed."""

    def process_request(connection: Any, request: Any) -> Any:
        headers, port = request.headers, connection.local_address[1]
        if not is_allowed(headers.get_all("Host"), headers.get_all("Origin"), port):
            return connection.respond(http.HTTPStatus.FORBIDDEN, "Only the viewer's own page may ask.\n")
        return answer(connection, request)

    return process_request


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
