"""`spanloop gallery`: the mechanisms of the zoo as live pages in a folder, with an index."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from spanloop.cli.terminal import add_json, colored, print_json
from spanloop.view.gallery import Made, write

EXAMPLES = (
    "spanloop gallery pages --only four_bar slider_crank",
    "spanloop gallery pages --only pendulum --json",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", metavar="FOLDER", help="folder of the pages; made if it is missing. Other files in it stay")
    add("--only", metavar="NAME", nargs="+", help="mechanisms of the zoo to show (all)")
    add("--open", action="store_true", help="open the index in the browser")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    folder, began = Path(chosen.folder), time.perf_counter()
    made = write(folder, names=chosen.only, report=(lambda page: None) if chosen.json else _line)
    index = folder / "index.html"
    total = index.stat().st_size + sum(page.size for page in made)
    refused = [page for page in made if page.reason]
    if chosen.json:
        pages = [{"name": p.exhibit.name, "file": p.path.name, "bytes": p.size, "reason": p.reason} for p in made]
        print_json({"index": str(index), "bytes": total, "pages": pages})
    else:
        count = f"{len(made) - len(refused)} live pages, {total / 1e6:.1f} MB, in {time.perf_counter() - began:.0f} s"
        print(f"\nwritten: {index}: {count}; they need no network")
    if chosen.open and not chosen.json:
        import webbrowser

        webbrowser.open(index.resolve().as_uri())
    return 1 if refused else 0


def _line(page: Made) -> None:
    """One line a mechanism, as soon as its page is written."""
    if page.reason:
        print(f"{page.exhibit.name:<18} {colored('not live', 'advice')}: {' '.join(page.reason.split())}", flush=True)
    else:
        print(f"{page.exhibit.name:<18} {page.size / 1e3:6.0f} kB  {page.path}", flush=True)
