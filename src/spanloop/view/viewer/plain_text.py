"""Text from models for viser, whose markdown renders raw HTML and reads the image files that it names."""

from __future__ import annotations

import re

from spanloop.errors import printable

_MARKUP = re.compile(r"[!-/:-@\[-`{-~]")  # the punctuation of ASCII: every character with a meaning in Markdown or HTML


def plain(text: str) -> str:
    """The text in one line, so that Markdown shows it as it is: punctuation as numeric entities.

    An entity stands for a character of text and never for markup.
    """
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", one_line(text))


def one_line(text: str) -> str:
    """The text in one line without control characters, for labels and paths, which viser does not interpret."""
    return " ".join(printable(text).split())
