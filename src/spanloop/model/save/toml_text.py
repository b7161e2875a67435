"""Values as TOML text that reads back bit for bit."""

from __future__ import annotations

import re
from typing import Any

from spanloop.errors import ModelError

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
_CONTROL = re.compile(r'["\\\x00-\x1f\x7f]')


def text(value: Any, owner: str) -> str:
    """A truth value, whole number, float, string or sequence of these."""
    if isinstance(value, str):
        return quoted(value, owner)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(float(value))  # float(): a NumPy scalar prints otherwise
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(text(v, owner) for v in value) + "]"
    raise ModelError(
        f"{owner} is a {type(value).__name__}; a file holds numbers, texts, truth values and lists of these"
    )


def quoted(value: str, owner: str) -> str:
    """A basic string: quotes, backslashes and control characters escaped."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ModelError(f"{owner} is {value!r}, which is not text (half a character); a file cannot hold it") from None
    return '"' + _CONTROL.sub(lambda m: _ESCAPES.get(m[0]) or f"\\u{ord(m[0]):04x}", value) + '"'


def key(name: str, owner: str) -> str:
    """A key, quoted if it has other characters than letters, digits, - and _."""
    return name if _BARE.fullmatch(name) else quoted(name, owner)
