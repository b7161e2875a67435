"""Chromium without a window, spoken to by the DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader", "--no-first-run", "--disable-extensions", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--remote-debugging-port=0", "--window-size=1000,640",
)  # fmt: skip


def chromium() -> str | None:
    """The browser's path, or None: SPANLOOP_CHROMIUM, or the first of the usual names."""
    names = (os.environ.get("SPANLOOP_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


def why_none() -> str | None:
    """Why browser tests cannot run here; None if they can."""
    if chromium() is None:
        return "no Chromium on PATH"
    try:
        import websockets.sync.client  # noqa: F401
    except ImportError:
        return "no websockets, with which Chromium is spoken to"
    return None


class Page:
    """One page of a browser."""

    def __init__(self, socket):
        self._socket, self._count = socket, 0
        self.requests: list[str] = []
        self.complaints: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters):
        """The result of a command."""
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            told = json.loads(self._socket.recv(timeout=60))
            if told.get("id") == self._count:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                return told["result"]
            self._note(told)

    def _note(self, told: dict) -> None:
        what, of = told.get("method"), told.get("params", {})
        if what == "Network.requestWillBeSent":
            self.requests.append(of["request"]["url"])
        elif what == "Network.webSocketCreated":
            self.requests.append(of["url"])
        elif what == "Runtime.exceptionThrown":
            details = of["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif what == "Log.entryAdded" and of["entry"]["level"] == "error":
            self.complaints.append(of["entry"]["text"])

    def open(self, url: str) -> None:
        """Go there; what the page before asked for and complained of (its server is gone, say) is forgotten."""
        self.call("Page.navigate", url="about:blank")
        self.until("document.URL === 'about:blank'")
        time.sleep(0.2)
        self.evaluate("1")
        self.requests.clear()
        self.complaints.clear()
        self.call("Page.navigate", url=url)

    def evaluate(self, expression: str):
        """The value of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return found["result"].get("value")

    def until(self, expression: str, timeout: float = 60.0):
        """Wait until an expression is true."""
        end = time.monotonic() + timeout
        while not (value := self.evaluate(expression)):
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {expression}")
            time.sleep(0.1)
        return value

    def mouse(self, kind: str, x: float, y: float) -> None:
        pressed = {"button": "left", "buttons": 0 if kind == "mouseReleased" else 1, "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pressed)

    def drag(self, start: tuple[float, float], end: tuple[float, float], steps: int = 6) -> None:
        """Press at a point [pixels], move, let go at another."""
        self.mouse("mousePressed", *start)
        for k in range(1, steps + 1):
            self.mouse("mouseMoved", *(a + (b - a) * k / steps for a, b in zip(start, end, strict=True)))
        self.mouse("mouseReleased", *end)

    def click(self, x: float, y: float) -> None:
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def screenshot(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def picture(self) -> np.ndarray:
        """What is seen, (height, width, 3), 0 to 255."""
        from PIL import Image

        return np.asarray(Image.open(io.BytesIO(self.screenshot())).convert("RGB")).astype(int)

    def strangers(self) -> list[str]:
        """Addresses that were asked for and are not of this machine."""
        self.evaluate("1")  # hears what is left to hear
        inside = ("127.0.0.1", "localhost", None, "")
        schemes = ("http", "https", "ws", "wss")
        parts = [(url, urlsplit(url)) for url in self.requests]
        return [url for url, p in parts if p.scheme in schemes and p.hostname not in inside]


@contextlib.contextmanager
def page():
    """A page of a new browser that keeps nothing."""
    from websockets.sync.client import connect

    path = chromium()
    assert path is not None
    with tempfile.TemporaryDirectory(prefix="spanloop-browser-", ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [path, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            with connect(_address(Path(folder), process), max_size=None) as socket:
                yield Page(socket)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _address(folder: Path, process: subprocess.Popen) -> str:
    """Where the first page can be spoken to."""
    from urllib.request import urlopen

    told, end = folder / "DevToolsActivePort", time.monotonic() + 60.0
    while time.monotonic() < end and process.poll() is None:
        lines = told.read_text().split() if told.exists() else []
        if lines:
            with urlopen(f"http://127.0.0.1:{lines[0]}/json/list", timeout=30) as answer:
                pages = [x for x in json.load(answer) if x["type"] == "page"]
            if pages:
                return pages[0]["webSocketDebuggerUrl"]
        time.sleep(0.1)
    raise RuntimeError(f"Chromium did not start (it ended with {process.poll()})")
