"""A table of a TOML file, read key by key; what is missing, of another type or left over gives a sentence."""

from __future__ import annotations

from typing import Any

from spanloop.errors import FileError, nearest
from spanloop.model.parts import Placement

_NEEDED: Any = object()
_LETTERS = {3: "three", 6: "six"}


class Table:
    """The keys of one table and the words that say where it stands: `arm.toml: joint 'elbow'`."""

    def __init__(self, content: Any, file: str, what: str):
        self.where = f"{file}: {what}"
        if not isinstance(content, dict):
            raise FileError(f"{self.where} is {content!r:.40}; expected a table")
        self.file, self.content, self.known = file, content, set[str]()
        if isinstance(content.get("name"), str):
            self.where = f"{file}: {what} {content['name']!r}"

    def _get(self, key: str, default: Any) -> Any:
        self.known.add(key)
        if key not in self.content and default is _NEEDED:
            raise FileError(f"{self.where}: has no {key}; expected {key} = ...")
        return self.content.get(key, default)

    def _must(self, good: bool, key: str, value: Any, expected: str) -> None:
        if not good:
            raise FileError(f"{self.where}: {key} is {value!r:.60}; expected {expected}")

    def text(self, key: str, default: Any = _NEEDED) -> str:
        value = self._get(key, default)
        self._must(isinstance(value, str), key, value, "a text in quotes")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self._get(key, default)
        self._must(isinstance(value, bool), key, value, "true or false")
        return value

    def number(self, key: str, default: Any = _NEEDED) -> float:
        value = self._get(key, default)
        self._must(_is_number(value), key, value, "a number")
        return float(value)

    def numbers(self, key: str, count: int | None = None, default: Any = _NEEDED) -> tuple[float, ...]:
        """A list of `count` numbers, of any length if None."""
        value = self._get(key, default)
        expected = "a list of numbers" if count is None else f"{_LETTERS.get(count, count)} numbers"
        good = isinstance(value, (list, tuple)) and all(map(_is_number, value))
        self._must(good and count in (None, len(value)), key, value, expected)
        return tuple(map(float, value))

    def per_freedom(self, key: str) -> float | tuple[float, ...] | None:
        """A number, a list of numbers, or None."""
        value = self._get(key, None)
        return value if value is None or _is_number(value) else self.numbers(key)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._get(key, [])
        good = isinstance(value, list) and all(isinstance(v, str) for v in value)
        self._must(good, key, value, "a list of texts")
        return tuple(value)

    def placement(self, suffix: str = "") -> Placement:
        nowhere = Placement()
        position = self.numbers("position" + suffix, 3, nowhere.position)
        key = "rotation" + suffix
        rows = self._get(key, nowhere.rotation)
        good = isinstance(rows, (list, tuple)) and len(rows) == 3
        good = good and all(isinstance(r, (list, tuple)) and len(r) == 3 and all(map(_is_number, r)) for r in rows)
        self._must(good, key, rows, "a matrix of three rows of three numbers")
        return Placement(tuple(tuple(map(float, r)) for r in rows), position)  # type: ignore[arg-type]

    def tables(self, key: str, what: str | None = None) -> list[Table]:
        """The tables [[key]]."""
        value = self._get(key, [])
        self._must(isinstance(value, list), key, value, f"tables [[{key}]]")
        return [Table(content, self.file, what or key) for content in value]

    def settings(self) -> tuple[tuple[str, Any], ...]:
        """The table [settings] as pairs; sequences are tuples."""
        value = self._get("settings", {})
        self._must(isinstance(value, dict), "settings", value, "a table")
        return tuple((name, self._setting(name, v)) for name, v in value.items())

    def _setting(self, name: str, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self._setting(name, v) for v in value)
        good = isinstance(value, (bool, int, float, str))
        self._must(good, f"setting {name!r}", value, "a number, text, truth value or list of these")
        return value

    def rest(self, allowed: set[str]) -> dict[str, Any]:
        """The keys that nobody asked for, if they are allowed."""
        left = {k: v for k, v in self.content.items() if k not in self.known}
        for key in left:
            if key not in allowed:
                offer = nearest(key, sorted((self.known | allowed) - set(self.content)))
                raise FileError(f"{self.where}: the key {key!r} is not known; {offer}")
        return left

    def end(self) -> None:
        """Nothing may be left over."""
        self.rest(set())


def _is_number(x: Any) -> bool:
    return isinstance(x, float) or (isinstance(x, int) and not isinstance(x, bool) and abs(x) < 10**300)
