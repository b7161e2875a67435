"""Bodies from finite elements in TOML: a table [[finite_elements]] with the file beside it and its digest.

The file has the reduced body, not the matrices: flexible/matrices/reduced_file.py. Text that is no file of its own, as
in a run that is saved, has the same content as `data`.
"""

from __future__ import annotations

import base64
import binascii
import re
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spanloop.errors import FileError
from spanloop.flexible.finite_element_body import FiniteElementBody
from spanloop.flexible.matrices import reduced_file
from spanloop.model.files.file_io import read_file
from spanloop.model.files.toml.beams import ALWAYS

if TYPE_CHECKING:
    from spanloop.model.files.toml.reader import Table


def element_entries(
    body: FiniteElementBody, name: str, beside: tuple[str, dict[str, bytes]] | None
) -> list[tuple[str, Any, Any]]:
    """Keys of [[finite_elements]]; beside: the stem of the file's name, and where the content of the .npz is put."""
    content = reduced_file.to_bytes(body)
    digest = f"sha256:{sha256(content).hexdigest()}"
    if beside is None:
        held = ("data", base64.b64encode(content).decode(), ALWAYS)
    else:
        stem, files = beside
        file = f"{stem}.{re.sub(r'[^A-Za-z0-9_-]', '_', name)}.npz"
        while file.lower() in map(str.lower, files):  # file systems that take A for a would keep one of both
            file = file.removesuffix(".npz") + "_.npz"
        files[file] = content
        held = ("file", file, ALWAYS)
    return [("name", name, ALWAYS), held, ("digest", digest, ALWAYS)]


def read_elements(t: Table, folder: Path | None) -> tuple[str, FiniteElementBody]:
    """The name and the body of a table [[finite_elements]]."""
    name, digest = t.text("name"), t.text("digest")
    if "data" in t.content:
        try:
            content, where = base64.b64decode(t.text("data"), validate=True), f"{t.where}: data"
        except (binascii.Error, ValueError):
            raise FileError(f"{t.where}: data is no text in base 64") from None
    else:
        file = t.text("file")
        if folder is None:
            raise FileError(f"{t.where}: its numbers are in the file {file!r}; load the TOML as a file beside it")
        if Path(file).name != file:
            raise FileError(f"{t.where}: file is {file!r}; expected the name of a file in the same folder")
        try:
            content, where = read_file(folder / file, "a flexible body in the .npz that save wrote"), file
        except FileError as error:
            raise FileError(f"{t.where}: {error}") from None
    t.end()
    found = f"sha256:{sha256(content).hexdigest()}"
    if found != digest:
        raise FileError(
            f"{t.where}: {where} is another file than the model was saved with ({found[:19]}..., expected "
            f"{digest[:19]}...); save the model again, or take the file it belongs to"
        )
    return name, reduced_file.from_bytes(content, where)
