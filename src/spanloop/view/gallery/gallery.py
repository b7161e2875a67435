"""Write the gallery: a live page for each exhibit, then the index.

Every file is written at once or not at all; the index comes last, so that an interrupted gallery has pages without an
index, or those of the gallery before. No file is deleted, and a file that spanloop did not write is never replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, SpanloopError, nearest
from spanloop.model.files.file_io import write_file
from spanloop.view.gallery.exhibits import EXHIBITS, Exhibit
from spanloop.view.gallery.index import Card, index_page
from spanloop.view.gallery.starts import Start
from spanloop.view.page.live.live_page import write_live
from spanloop.view.video.still import still

INDEX = "index.html"
OURS = b'<meta name="generator" content="spanloop">'
HEAD = 4096  # bytes of a page in which that stands
PICTURE = (352, 220)  # pixels


@dataclass(frozen=True)
class Made:
    """A page of the gallery: its exhibit, its file and size [bytes]; or why there is none."""

    exhibit: Exhibit
    path: Path
    size: int
    reason: str = ""


def write(
    folder: str | Path, *, names: Sequence[str] | None = None, report: Callable[[Made], None] = lambda made: None
) -> tuple[Made, ...]:
    """Write the gallery of the zoo into a folder, which is made if it is missing, and return what was made.

    names: of the mechanisms to show, as in the zoo; all by default. report: called after each of them. A mechanism that
    cannot run live is on the index with the reason.
    """
    where, chosen = Path(folder), _chosen(names)
    _check(where, [INDEX, *(f"{e.name}.html" for e in chosen)])
    where.mkdir(exist_ok=True)
    made, cards = [], []
    for exhibit in chosen:
        start = exhibit.start()
        found = _page(exhibit, start, where / f"{exhibit.name}.html")
        made.append(found)
        cards.append(_card(found, start))
        report(found)
    write_file(where / INDEX, index_page(cards).encode())
    return tuple(made)


def write_page(name: str, path: Path, **options: Any) -> None:
    """Write the page of one mechanism of the zoo as the gallery has it; options: those of write_live."""
    (exhibit,) = _chosen([name])
    start = exhibit.start()
    given = {**start.options, **options}
    write_live(start.model, path, start.q, start.v, title=exhibit.title, view=exhibit.view, **given)


def _page(exhibit: Exhibit, start: Start, path: Path) -> Made:
    try:
        write_live(start.model, path, start.q, start.v, title=exhibit.title, view=exhibit.view, **start.options)
    except SpanloopError as error:
        return Made(exhibit, path, 0, str(error))
    return Made(exhibit, path, path.stat().st_size)


def _card(made: Made, start: Start) -> Card:
    """What the index shows of a page; its link is empty if there is none."""
    model, exhibit = start.model, made.exhibit
    mobility = int(Dynamics(model).mobility(start.q))
    counts = (
        (len(model.bodies), "body", "bodies"),
        (len(model.loops), "loop", "loops"),
        (len(model.contacts), "contact", "contacts"),
    )
    facts = [f"{n} {one if n == 1 else more}" for n, one, more in counts if n] + [f"mobility {mobility}"]
    return Card(
        title=exhibit.title,
        caption=exhibit.caption,
        facts=", ".join(facts),
        picture=still(model, np.asarray(start.q), PICTURE, exhibit.view),
        link="" if made.reason else made.path.name,
        reason=made.reason,
    )


def _chosen(names: Sequence[str] | None) -> list[Exhibit]:
    if names is None:
        return list(EXHIBITS)
    known = {e.name: e for e in EXHIBITS}
    for name in names:
        if name not in known:
            raise InputError(f"gallery: the zoo has no {name!r}; {nearest(name, tuple(known))}")
    return [known[name] for name in dict.fromkeys(names)]


def _check(where: Path, files: Sequence[str]) -> None:
    """Raise InputError if the folder cannot be made, or holds a file of these names that spanloop did not write."""
    if where.exists() and not where.is_dir():
        raise InputError(f"{where}: this is a file; a gallery is a folder of pages")
    if not where.parent.is_dir():
        raise InputError(f"{where}: there is no folder {str(where.parent)!r}; make it first")
    for name in files:
        path = where / name
        if path.is_symlink() or (path.exists() and not _is_ours(path)):
            raise InputError(f"{path}: spanloop did not write this file and does not replace it; choose another folder")


def _is_ours(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return OURS in file.read(HEAD)
