"""A Firefox without a screen, driven by WebDriver BiDi over a web socket of this machine; methods as Chromium's.

Where Xvfb is installed the browser draws into its memory and has WebGL; else it is headless, and may have none.
What a page writes to its console, what it asks of the network and what goes wrong in it is kept.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("firefox-esr", "firefox")
PATIENCE = 60.0  # s
PREFERENCES = {  # WebGL without a graphics card; no first-run pages, no services that ask the network
    "webgl.force-enabled": True,
    "webgl.disabled": False,
    "gfx.webrender.software": True,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.aboutwelcome.enabled": False,
    "browser.startup.page": 0,
    "app.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "extensions.update.enabled": False,
    "remote.active-protocols": 1,
}


def found() -> str | None:
    """The browser's path, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def why_none() -> str | None:
    """Why Firefox cannot be driven here; None if it can."""
    if found() is None:
        return "no Firefox on PATH"
    try:
        import websockets.sync.client  # noqa: F401
    except ImportError:
        return "no websockets, with which Firefox is spoken to"
    return None


def _virtual_screen() -> tuple[subprocess.Popen | None, dict[str, str]]:
    """A screen in memory, and the variable that names it; nothing where there is no Xvfb."""
    path = shutil.which("Xvfb")
    if path is None:
        return None, {}
    told, number = os.pipe()
    size = ["-screen", "0", "1920x1200x24", "-nolisten", "tcp", "-displayfd", str(number)]
    process = subprocess.Popen([path, *size], pass_fds=(number,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(number)
    with os.fdopen(told) as answer:
        line = answer.readline().strip()
    return process, {"DISPLAY": f":{line}"}


class Firefox:
    """One browser with one page. A context manager; ends what it started."""

    def __init__(self, width: int = 1280, height: int = 800):
        from websockets.sync.client import connect

        self.screen, display = _virtual_screen()
        self.profile = Path(tempfile.mkdtemp(prefix="spanloop-firefox-"))
        lines = (f"user_pref({json.dumps(k)}, {json.dumps(x)});" for k, x in PREFERENCES.items())
        (self.profile / "user.js").write_text("\n".join(lines) + "\n")
        command = [found() or NAMES[0], *([] if display else ["--headless"]), "--remote-debugging-port=0"]
        self.process = subprocess.Popen(
            [*command, "--no-remote", "--profile", str(self.profile), "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **display, "MOZ_CRASHREPORTER_DISABLE": "1"},
        )
        self.console: list[str] = []  # errors and warnings of the page
        self.asked: list[str] = []  # addresses that were asked for
        self._number = 0
        try:
            self._socket = connect(self._address(), max_size=None, open_timeout=PATIENCE)
            self.call("session.new", capabilities={})
            self.context = self.call("browsingContext.getTree")["contexts"][0]["context"]
            self.call("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
            self.resize(width, height)
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Firefox:
        return self

    def __exit__(self, *_) -> None:
        self._socket.close()
        self._end()

    def _end(self) -> None:
        for process in filter(None, (self.process, self.screen)):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _address(self) -> str:
        """Where the browser can be spoken to; it writes its port into the profile."""
        port, end = self.profile / "WebDriverBiDiServer.json", time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            if port.exists() and (words := port.read_text()):
                where = json.loads(words)
                return f"ws://{where['ws_host']}:{where['ws_port']}/session"
            time.sleep(0.1)
        raise RuntimeError(f"Firefox did not start (it ended with {self.process.poll()})")

    # ---- what a test does

    def open(self, address: str | Path, ready: str = "document.readyState === 'complete'") -> None:
        """Go to a page or file and wait until an expression holds."""
        where = address.resolve().as_uri() if isinstance(address, Path) else address
        self.call("browsingContext.navigate", context=self.context, url=where, wait="complete")
        self.until(ready)

    def before(self, script: str) -> None:
        """Run statements in every page that is opened from now on, before its own scripts."""
        self.call("script.addPreloadScript", functionDeclaration=f"() => {{ {script} }}", contexts=[self.context])

    def evaluate(self, expression: str):
        """The value of an expression in the page; an exception there is one here."""
        told = f"Promise.resolve({expression}).then((x) => JSON.stringify(x === undefined ? null : x))"
        target = {"context": self.context}
        answer = self.call("script.evaluate", expression=told, target=target, awaitPromise=True)
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    def until(self, expression: str, patience: float = PATIENCE) -> None:
        """Wait until an expression holds in the page."""
        end = time.monotonic() + patience
        while not self.evaluate(f"Boolean({expression})"):
            if time.monotonic() > end:
                raise TimeoutError(f"waited {patience:g} s for {expression}; console: {self.console}")
            time.sleep(0.05)

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height}
        self.call("browsingContext.setViewport", context=self.context, viewport=size)

    def screenshot(self, path: Path | None = None) -> bytes:
        """A picture of the window as PNG."""
        picture = base64.b64decode(self.call("browsingContext.captureScreenshot", context=self.context)["data"])
        if path is not None:
            path.write_bytes(picture)
        return picture

    def press(self, x: float, y: float) -> None:
        """Move the pointer to a place [pixels] and press its button."""
        self._point(self._to(x, y), {"type": "pointerDown", "button": 0})

    def move(self, x: float, y: float) -> None:
        self._point(self._to(x, y))

    def release(self) -> None:
        self._point({"type": "pointerUp", "button": 0})

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.press(*start)
        for share in (0.25, 0.5, 0.75, 1.0):
            x, y = (a + share * (b - a) for a, b in zip(start, end, strict=True))
            self.move(x, y)
        self.release()

    def click(self, x: float, y: float) -> None:
        self.press(x, y)
        self.release()

    def key(self, key: str) -> None:
        actions = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keyboard", "actions": actions}
        self.call("input.performActions", context=self.context, actions=[source])

    @staticmethod
    def _to(x: float, y: float) -> dict:
        return {"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0}

    def _point(self, *actions: dict) -> None:
        source = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": list(actions)}
        self.call("input.performActions", context=self.context, actions=[source])

    # ---- the protocol: JSON messages

    def call(self, method: str, **parameters):
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=PATIENCE))
            if answer.get("id") == self._number:
                if answer["type"] == "error":
                    raise RuntimeError(f"{method}: {answer['error']}: {answer['message']}")
                return answer["result"]
            self._noted(answer)

    def _noted(self, event: dict) -> None:
        method, told = event.get("method", ""), event.get("params", {})
        if method == "network.beforeRequestSent":
            self.asked.append(told["request"]["url"])
        elif method == "log.entryAdded" and told["level"] in ("error", "warn"):
            self.console.append(told["text"] or "")
