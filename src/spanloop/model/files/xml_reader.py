"""XML with line numbers, read by the standard library's expat.

Document types and with them entities (bombs, other files) are refused before anything is expanded; depth, number of
elements and length of texts are limited.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from spanloop.errors import FileError
from spanloop.model.files.file_io import utf8_complaint
from spanloop.model.files.load_notes import INVALID, LoadNotes

DEEPEST = 100
MOST = 400_000  # elements
LONGEST = 2**20  # characters of an attribute, or of the text inside an element
_PIECE = 2**18  # bytes that the parser gets at once
_LONGER = "no mechanism needs that many"


class Element:
    """A tag with its attributes, the elements and the text inside it, with file and line."""

    __slots__ = ("attributes", "children", "content", "file", "line", "notes", "tag")

    def __init__(self, tag: str, attributes: dict[str, str], file: str, line: int, notes: LoadNotes):
        self.tag, self.attributes, self.file, self.line, self.notes = tag, attributes, file, line, notes
        self.children: list[Element] = []
        self.content = ""

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"

    def all(self, tag: str) -> Iterator[Element]:
        """The elements with this tag."""
        return (c for c in self.children if c.tag == tag)

    def one(self, tag: str) -> Element | None:
        """The element with this tag, None if there is none; of several the first counts, with a note."""
        found = None
        for child in self.children:
            if child.tag == tag:
                if found is not None:
                    self.notes.add(f"{INVALID} a second <{tag}> in <{self.tag}>, the first is read", child.where)
                    break
                found = child
        return found

    def needed(self, tag: str) -> Element:
        """The element with this tag; raises FileError if there is none."""
        found = self.one(tag)
        if found is None:
            raise FileError(f"{self.where}: <{self.tag}> has no <{tag}>; expected one")
        return found

    def text(self, key: str) -> str:
        """An attribute that must be there and not be empty."""
        value = self.attributes.get(key, "").strip()
        if not value:
            raise FileError(f'{self.where}: <{self.tag}> has no {key}; expected {key}="..."')
        return value

    def number(self, key: str, default: float | None = None, *, infinite: bool = False) -> float:
        """An attribute that is one finite number (or may be infinite)."""
        if default is not None and key not in self.attributes:
            return default
        return self.numbers(key, 1, infinite=infinite)[0]

    def numbers(
        self, key: str, count: int, default: tuple[float, ...] | None = None, *, infinite: bool = False
    ) -> tuple[float, ...]:
        """An attribute that is `count` numbers separated by blanks."""
        if default is not None and key not in self.attributes:
            return default
        return parsed_numbers(self.text(key), count, f"{self.where}: <{self.tag}> {key}", infinite=infinite)


def inside(element: Element | None, *tags: str) -> Element | None:
    """The first element at the end of a path of tags, None if there is none."""
    for tag in tags:
        element = next(element.all(tag), None) if element is not None else None
    return element


def parsed_numbers(text: str, count: int, owner: str, *, infinite: bool = False) -> tuple[float, ...]:
    """`count` numbers separated by blanks; `owner` begins the error, file and line first."""
    try:
        values = tuple([float(x) + 0.0 for x in text.split(None, count)])  # + 0.0 turns -0.0 into 0.0
        good = len(values) == count and (
            all(map(math.isfinite, values)) or (infinite and not any(map(math.isnan, values)))
        )
    except ValueError:
        good = False
    if good and "_" not in text and text.isascii():
        return values
    raise FileError(f"{owner} is {_shortened(text)!r}; expected {_count(count)}{_advice(text)}")


def parse(data: bytes, file: str, notes: LoadNotes, content: bool = False, deepest: int = DEEPEST) -> Element:
    """The outermost element of a document; content: keep the text inside elements too; deepest: levels of nesting
    allowed.

    What other readers take and the standard does not (-- inside comments, attributes without a blank between them) is
    read too, with a note.
    """
    try:
        return _parsed(data, file, notes, content, deepest)
    except FileError:
        mended = _mended(data)
        if mended == data:
            raise
        try:
            found = _parsed(mended, file, notes, content, deepest)
        except FileError:
            found = None
        if found is None:
            raise
    notes.add("comments or attributes that are not valid XML", f"{file}:1")
    return found


_JOINED = re.compile(rb"""(=\s*"[^"<>]*")(?=[A-Za-z_])""")


def _mended(data: bytes) -> bytes:
    """The text without its comments, and with blanks between attributes; every line keeps its number."""
    pieces, at = [], 0
    while (start := data.find(b"<!--", at)) >= 0 and (end := data.find(b"-->", start)) >= 0:
        pieces += [data[at:start], b"\n" * data.count(b"\n", start, end)]
        at = end + 3
    return _JOINED.sub(rb"\1 ", b"".join([*pieces, data[at:]]))


def _parsed(data: bytes, file: str, notes: LoadNotes, content: bool, deepest: int) -> Element:
    from xml.parsers import expat

    data, encoding, before = _readable(data, file, notes)
    parser = expat.ParserCreate(encoding)
    parser.buffer_text = True
    open_elements: list[Element] = [Element("", {}, file, 0, notes)]
    seen = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal seen
        seen += 1
        element = Element(tag, attributes, file, before + parser.CurrentLineNumber, notes)
        for key, value in attributes.items():
            if len(value) > LONGEST:
                raise FileError(f"{element.where}: <{tag}> {key:.60} has {len(value)} characters; {_LONGER}")
        if len(open_elements) > deepest:
            raise FileError(f"{element.where}: elements are nested more than {deepest} deep; none needs that")
        if seen > MOST:
            raise FileError(f"{element.where}: more than {MOST} elements; no mechanism needs that many")
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(tag: str) -> None:
        open_elements.pop()

    def characters(text: str) -> None:
        open_elements[-1].content += text
        if len(open_elements[-1].content) > LONGEST:
            raise FileError(
                f"{file}:{before + parser.CurrentLineNumber}: a text of more than {LONGEST} characters; {_LONGER}"
            )

    def document_type(name: str, system: str | None, public: str | None, has_own_entities: bool) -> None:
        if not has_own_entities:
            return  # nothing is defined here, and nothing is read from elsewhere
        raise FileError(
            f"{file}:{before + parser.CurrentLineNumber}: declares a document type (<!DOCTYPE {name} ...>), "
            "which can define entities; these are not read. Remove the declaration"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = document_type
    if content:
        parser.CharacterDataHandler = characters
    try:
        for at in range(0, len(data), _PIECE):
            parser.Parse(data[at : at + _PIECE], False)
            if at - parser.CurrentByteIndex > 2 * LONGEST:
                line = before + parser.CurrentLineNumber
                raise FileError(f"{file}:{line}: a tag or comment of more than {2 * LONGEST} characters; {_LONGER}")
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        if len(open_elements) > 1 or not open_elements[0].children:
            raise FileError(_broken(data, file, error, before)) from None
        notes.add("text behind the outermost element left out", f"{file}:{before + error.lineno}")
    except (LookupError, ValueError) as error:  # of an encoding that is declared but unknown
        if isinstance(error, FileError):
            raise
        raise FileError(f"{file}:1: its encoding cannot be read ({error}); save the file as UTF-8") from None
    return open_elements[0].children[0]


def _readable(data: bytes, file: str, notes: LoadNotes) -> tuple[bytes, str | None, int]:
    """The data without blanks before its declaration, its encoding if that is not UTF-8, and how many lines went."""
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith(b"<?xml"):
        text = data
    before = data[: len(data) - len(text)].count(b"\n")
    if before:
        notes.add("blank lines before <?xml ...?> left out", f"{file}:1")
    if b"encoding=" in text[:200] or text.startswith((b"\xff\xfe", b"\xfe\xff")) or not utf8_complaint(text, file):
        return text, None, before
    notes.add("text that is not UTF-8, read as Latin-1", utf8_complaint(data, file).partition(";")[0])
    return text, "iso-8859-1", before


def _broken(data: bytes, file: str, error: Any, before: int) -> str:
    from xml.parsers import expat

    reason = expat.ErrorString(error.code)
    if reason in ("no element found", "unclosed token", "unclosed CDATA section", "partial character"):
        reason += ", the file ends too early"
    return f"{file}:{before + error.lineno}: not readable as XML ({reason}); expected a complete XML file"


def _count(n: int) -> str:
    return "a number" if n == 1 else f"{n} numbers separated by blanks"


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _advice(text: str) -> str:
    if "${" in text or "$(" in text:
        return ". This is xacro: expand it first (xacro robot.xacro > robot.urdf)"
    if "," in text:
        return ", without commas"
    return ""
