"""The HTML page of a run: template, style, script and data in one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spanloop.errors import InputError, in_one_line, nearest
from spanloop.model.files.file_io import write_file
from spanloop.view.page.data import page_data
from spanloop.view.target_file import target_file

if TYPE_CHECKING:
    from spanloop.trajectory import Trajectory

OPTIONS = ("title", "folder", "live")  # of the page of a run
OF_LIVE_PART = ("first", "parameters", "gravity")  # inside live={...}
# in this order, as one script
SCRIPTS = (
    "vectors.js",
    "solids.js",
    "shaders.js",
    "bending.js",
    "drawing.js",
    "contacts.js",
    "layers.js",
    "camera.js",
    "timeline.js",
    "plots.js",
    "report.js",
    "events.js",
    "modes.js",
    "main.js",
)
# before main.js, in pages whose mechanism runs
LIVE_SCRIPTS = (
    "live_run.js",
    "live_clock.js",
    "live_grab.js",
    "live_stage.js",
    "live_pointer.js",
    "live_controls.js",
    "live_plots.js",
    "live.js",
)


def write(
    run: Trajectory,
    path: str | Path,
    *,
    title: str = "",
    folder: str | Path | None = None,
    live: bool | Mapping[str, Any] = False,
    **others: Any,
) -> Path:
    """Write the page of a run and return its path, which must end in .html. folder: where mesh files are.

    live: the mechanism also runs in the page from the run's first state, where it can be grabbed and pulled. A mapping
    has "parameters" and "gravity" (LiveMotion.of_run), and "first": "live" or "recorded", what is shown first.
    others: refused, with the name or the place that was meant.
    """
    where = target_file(path, "a page", (".html", ".htm"), "run.save(...) writes .nc, .h5, .npz and .csv")
    write_file(where, text(run, title=title, folder=folder, live=live, **others).encode())
    return where


def text(
    run: Trajectory,
    *,
    title: str = "",
    folder: str | Path | None = None,
    live: bool | Mapping[str, Any] = False,
    **others: Any,
) -> str:
    """The page of a run as HTML text."""
    _refuse_others(others)
    data = page_data(run, title or f"{run.model.name}, {run.duration:g} s", folder)
    if live is False:
        return page_of(data)
    from spanloop.view.page.live.live_page import live_part_of_run

    return page_of({**data, "live": live_part_of_run(run, folder, {} if live is True else live)})


def _refuse_others(names: Iterable[str]) -> None:
    """Refuse options that the page of a run does not have."""
    for name in names:
        if name in OF_LIVE_PART:
            raise InputError(
                f"page: {name!r} is no option of a run; it belongs to the live part: live={{{name!r}: ...}}"
            )
        raise InputError(f"page: there is no option {name!r} for a run; {nearest(name, OPTIONS)}")


def page_of(data: dict[str, Any]) -> str:
    """The page that shows these data, as HTML text. data["live"]: of a mechanism that runs in it."""
    is_live = "live" in data
    style = _asset("page.css") + (_asset("live.css") if is_live else "")
    names = (*SCRIPTS[:-1], *(LIVE_SCRIPTS if is_live else ()), SCRIPTS[-1])
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in names) + "\n})();\n"
    policy = (
        "default-src 'none'; img-src data: blob:; "
        f"style-src 'sha256-{_hash(style)}'; script-src 'sha256-{_hash(script)}'"
    ) + (" 'wasm-unsafe-eval'" if is_live else "")
    parts = {
        "TITLE": escape(in_one_line(data["title"])),
        "POLICY": policy,
        "STYLE": style,
        "DATA": _inside_script(_json(data)),
        "SCRIPT": script,
    }
    page = _asset("page.html")
    head, *rest = page.split("{{")
    return head + "".join(parts[name] + after for name, after in (piece.split("}}", 1) for piece in rest))


def _json(data: dict[str, Any]) -> str:
    try:
        return json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise InputError("the run has positions or sizes that are not finite, which a page cannot show") from None


def _inside_script(data: str) -> str:
    """JSON escaped so that no name in it can end the script element."""
    return data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return resources.files("spanloop.view.page").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    """The hash that admits the page's own script and style in its content security policy."""
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
