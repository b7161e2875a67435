"""The index of the gallery: a page of pictures that link to the live pages, without scripts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from spanloop import __version__
from spanloop.errors import in_one_line
from spanloop.view.gallery.png import png

STYLE = """
:root { color-scheme: light dark; --paper: #f6f5f1; --card: #ffffff; --ink: #22303c; --grey: #5c6a75; --line: #dedcd5; --accent: #2f6ea8; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181c; --card: #1c2227; --ink: #e4e8eb; --grey: #9aa7b1; --line: #2e373e; --accent: #7db3e3; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.45 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
header, footer { max-width: 76rem; margin: 0 auto; padding: 1.5rem 1.25rem 0.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 0.25rem; }
header p, footer p { margin: 0; color: var(--grey); max-width: 46rem; }
main { max-width: 76rem; margin: 0 auto; padding: 1rem 1.25rem; display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); }
.card { display: flex; flex-direction: column; background: var(--card); border: 1px solid var(--line); border-radius: 10px; overflow: hidden; color: inherit; text-decoration: none; }
a.card:hover, a.card:focus-visible { border-color: var(--accent); outline: 2px solid var(--accent); outline-offset: -1px; }
.card img { display: block; width: 100%; height: auto; padding: 0.75rem; }
.card h2 { font-size: 1.05rem; margin: 0 1rem; }
.card p { margin: 0.25rem 1rem 0; font-size: 0.92rem; }
.card .facts, .card .reason { color: var(--grey); font-size: 0.82rem; margin-bottom: 1rem; }
footer { padding-bottom: 2rem; font-size: 0.9rem; }
""".strip()  # noqa: E501

ABOUT = (
    "Every page simulates its mechanism as it is shown, in this browser: grab a body and pull. Loops stay closed to "
    "rounding. Nothing is fetched; the pages work from a folder or a web server."
)


@dataclass(frozen=True, eq=False)
class Card:
    """A mechanism on the index: words, a picture (height, width, 4), the file of its page; or why there is none."""

    title: str
    caption: str
    facts: str
    picture: np.ndarray
    link: str
    reason: str = ""


def index_page(cards: Sequence[Card]) -> str:
    """The index as HTML text."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<meta name="generator" content="spanloop">',
        "<title>Mechanisms that run in the page</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        f"<header><h1>Mechanisms that run in the page</h1><p>{escape(ABOUT)}</p></header>",
        "<main>",
        *map(_card, cards),
        "</main>",
        f"<footer><p>Made by spanloop {escape(__version__)}: spanloop gallery FOLDER</p></footer>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _card(card: Card) -> str:
    height, width, _ = card.picture.shape
    data = base64.b64encode(png(card.picture)).decode()
    inside = (
        f'<img src="data:image/png;base64,{data}" width="{width}" height="{height}" alt="">'
        f"<h2>{escape(card.title)}</h2><p>{escape(card.caption)}</p>"
    )
    if card.link:
        return f'<a class="card" href="{escape(card.link)}">{inside}<p class="facts">{escape(card.facts)}</p></a>'
    reason = f"It does not run live: {in_one_line(card.reason)}"
    facts = f'<p class="facts">{escape(card.facts)}</p>'
    return f'<div class="card">{inside}{facts}<p class="reason">{escape(reason)}</p></div>'
