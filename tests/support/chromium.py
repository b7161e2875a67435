"""A headless Chromium, driven over a pipe by Chrome's own protocol: nothing but the standard library.

No port is opened. What a page writes to its console, what it asks of the network and what goes wrong in it is kept.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio",
)  # fmt: skip
PATIENCE = 60.0  # s


def found() -> str | None:
    """The browser's path, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One browser with one page. A context manager; ends what it started."""

    def __init__(self, width: int = 1280, height: int = 800):
        self.profile = tempfile.mkdtemp(prefix="spanloop-browser-")
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        shell = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'
        command = [found() or NAMES[0], *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={self.profile}"]
        self.process = subprocess.Popen(
            ["bash", "-c", shell, *command, f"--window-size={width},{height}", "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._pending, self._number = b"", 0
        self.console: list[str] = []  # errors and warnings of the page
        self.asked: list[str] = []  # addresses that were asked for
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    session: str | None = None

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self.profile, ignore_errors=True)

    # ---- what a test does

    def open(self, address: str | Path, ready: str = "document.readyState === 'complete'") -> None:
        """Go to a page or file and wait until an expression holds."""
        where = address.resolve().as_uri() if isinstance(address, Path) else address
        self.call("Page.navigate", url=where)
        self.until(ready)

    def evaluate(self, expression: str):
        """The value of an expression in the page; an exception there is one here."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", expression))
        return answer["result"].get("value")

    def until(self, expression: str, patience: float = PATIENCE) -> None:
        """Wait until an expression holds in the page."""
        end = time.monotonic() + patience
        while not self.evaluate(f"Boolean({expression})"):
            if time.monotonic() > end:
                raise TimeoutError(f"waited {patience:g} s for {expression}; console: {self.console}")
            time.sleep(0.05)

    def resize(self, width: int, height: int, mobile: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def screenshot(self, path: Path | None = None) -> bytes:
        """A picture of the window as PNG."""
        picture = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if path is not None:
            path.write_bytes(picture)
        return picture

    def mouse(self, kind: str, x: float, y: float, **more) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def before(self, script: str) -> None:
        """Run statements in every page that is opened from now on, before its own scripts."""
        self.call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def press(self, x: float, y: float) -> None:
        """Move the pointer to a place [pixels] and press its button."""
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self._held = (x, y)

    def move(self, x: float, y: float) -> None:
        held = {"button": "left", "buttons": 1} if self._held else {}
        self.mouse("mouseMoved", x, y, **held)
        self._held = (x, y) if self._held else None

    def release(self) -> None:
        x, y = self._held or (0.0, 0.0)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self._held = None

    _held: tuple[float, float] | None = None  # where the pressed pointer is

    def drag(self, start: tuple[float, float], end: tuple[float, float], **more) -> None:
        self.mouse("mousePressed", *start, button="left", buttons=1, clickCount=1, **more)
        for share in (0.25, 0.5, 0.75, 1.0):
            x, y = (a + share * (b - a) for a, b in zip(start, end, strict=True))
            self.mouse("mouseMoved", x, y, button="left", buttons=1, **more)
        self.mouse("mouseReleased", *end, button="left", clickCount=1, **more)

    def click(self, x: float, y: float) -> None:
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def key(self, key: str, **more) -> None:
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **more)

    # ---- the protocol: JSON, each message ended by a zero byte

    def call(self, method: str, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._noted(answer)

    def _next(self) -> dict:
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._read], [], [], PATIENCE)
            data = os.read(self._read, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError("the browser does not answer")
            self._pending += data
        message, _, self._pending = self._pending.partition(b"\0")
        return json.loads(message)

    def _noted(self, event: dict) -> None:
        method, told = event.get("method", ""), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.asked.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.console.append(" ".join(str(a.get("value", a.get("description"))) for a in told["args"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.console.append(told["entry"]["text"])
