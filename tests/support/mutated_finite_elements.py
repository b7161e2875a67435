"""Damaged files of finite elements: a seed says which format, which file and which damage."""

from __future__ import annotations

import io
import random
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import finite_element_writers as write
import numpy as np

LABELS = np.array([2, 5, 70])
NUMBER = re.compile(rb"[+-]?\d+(\.\d*)?([EeDd][+-]?\d+)?")
WORDS = (
    b"nan",
    b"inf",
    b"-1",
    b"0",
    b"1e999",
    b"999999999",
    b"99999999999999999999",
    b"1_0",
    b"x",
    b"",
    b"1.5",
    b"0x10",
)


@dataclass(frozen=True)
class Format:
    """Files by name with their content; arguments of `load` with names of files, or none for `load_modal`."""

    files: dict[str, bytes]
    arguments: dict[str, str] | None


@cache
def formats() -> dict[str, Format]:
    """One body in every format."""
    rng = np.random.default_rng(0)
    keys = np.array([(n, c) for n in LABELS for c in range(1, 7)])
    mass, stiffness = (write.random_symmetric(rng, len(keys)) for _ in range(2))
    positions = rng.uniform(-1.0, 1.0, (3, 3))
    inp = write.input_nodes(LABELS, positions).encode()
    cards = {form: write.grids(LABELS, positions, form).encode() for form in ("large", "small", "free")}
    by_name = {"KAA": stiffness, "MAA": mass}
    archive = io.BytesIO()
    np.savez_compressed(archive, mass=mass, stiffness=stiffness, positions=positions, labels=LABELS)

    def one(name: str, content: str | bytes, nodes: str = "body.inp", data: bytes = inp) -> Format:
        content = content if isinstance(content, bytes) else content.encode()
        return Format({name: content, nodes: data}, {"path": name, "nodes": nodes})

    def two(extension: str, contents: list[str], **more: str) -> Format:
        files = {f"{n}.{extension}": x.encode() for n, x in zip(("mass", "stiffness"), contents, strict=True)}
        files |= {"body.inp": inp} | {f"body.{n}": x.encode() for n, x in more.items()}
        given = {"mass": f"mass.{extension}", "stiffness": f"stiffness.{extension}", "nodes": "body.inp"}
        return Format(files, given | ({"dofs": "body.dof"} if "dof" in more else {}))

    found = {
        "op4 text": one("body.op4", write.op4_text(by_name), "body.bdf", cards["large"]),
        "op4 sparse": one("body.op4", write.op4_text(by_name, sparse=True)),
        "op4 binary": one("body.op4", write.op4_binary(by_name)),
        "op4 wide": one("body.op4", write.op4_binary(by_name, ">", "q")),
        "dmig": one("body.pch", write.dmig(by_name, keys), "body.bdf", cards["small"]),
        "dmig free": one("body.pch", write.dmig(by_name, keys, "free"), "b.bdf", cards["free"]),
        "substructure": one("body.mtx", write.substructure(stiffness, mass, keys)),
        "abaqus": two("mtx", [write.abaqus_labelled(m, keys) for m in (mass, stiffness)]),
        "calculix": two("sti", [write.coordinates(m) for m in (mass, stiffness)], dof=write.dof_file(keys)),
        "frd": one("body.op4", write.op4_binary(by_name), "body.frd", write.frd(LABELS, positions).encode()),
        "market": two("mm", [_market(m) for m in (mass, stiffness)]),
        "harwell": two("hb", [write.harwell_boeing(m) for m in (mass, stiffness)]),
        "npz": Format({"body.npz": archive.getvalue()}, {"path": "body.npz"}),
        "sid": Format({"body.sid": _sid(rng).encode()}, None),
    }
    return found


def _market(matrix: np.ndarray) -> str:
    entries = list(write.lower_entries(matrix))
    head = f"%%MatrixMarket matrix coordinate real symmetric\n% a comment\n{len(matrix)} {len(matrix)} {len(entries)}\n"
    return head + "".join(f"{i + 1} {j + 1} {v:.16e}\n" for i, j, v in entries)


def _sid(rng: np.random.Generator) -> str:
    n = 2
    sizes = {"mdCM": (3, 1), "J": (6, 1), "Ct": (n, 3), "Cr": (n, 3)}
    terms = {name: (3, rng.normal(size=s), rng.normal(size=(s[0], n, s[1]))) for name, s in sizes.items()}
    terms |= {"Me": (4, np.eye(n), None), "Ke": (1, np.diag([2.0, 3.0]), None)}
    node = {k: (3, rng.normal(size=s), None) for k, s in {"origin": (3, 1), "phi": (3, n), "psi": (3, n)}.items()}
    return write.sid(1.0, n, {7: node | {"AP": (4, np.eye(3), None)}}, terms)


@dataclass(frozen=True)
class Damage:
    """A damaged format: files, the name of the damaged one, and in words what was done to it."""

    format: str
    files: dict[str, bytes]
    arguments: dict[str, str] | None
    name: str
    what: str


def damaged(seed: int) -> Damage:
    """The damage of a seed."""
    rng = random.Random(seed)
    names = list(formats())
    chosen = names[seed % len(names)]
    found = formats()[chosen]
    name = rng.choice(list(found.files))
    kind = rng.choice((_cut, _flipped, _removed, _doubled, _inserted, _other_number, _lost_line, _moved_line, _integer))
    data = kind(found.files[name], rng)
    return Damage(chosen, {**found.files, name: data}, found.arguments, name, f"{kind.__name__} of {name}")


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _flipped(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 3, 30))):
        out[rng.randrange(len(out))] = rng.choice((rng.randrange(256), rng.choice(b"0123456789.,+-E *\n")))
    return bytes(out)


def _removed(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice((1, 2, 8, 100)) :]


def _doubled(data: bytes, rng: random.Random) -> bytes:
    at, size = rng.randrange(len(data)), rng.choice((1, 8, 100, 2000))
    return data[: at + size] + data[at:]


def _inserted(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return (
        data[:at] + rng.choice((b"\x00", b"\xff", b"\n", b",", b"$", b"*", b"**", b" " * 300, b"9" * 400)) + data[at:]
    )


def _other_number(data: bytes, rng: random.Random) -> bytes:
    places = list(NUMBER.finditer(data))
    if not places:
        return b""
    place = rng.choice(places[:20] if rng.random() < 0.5 else places)
    word = rng.choice(WORDS)
    if rng.random() < 0.5:  # of the same width
        word = word[-len(place[0]) :].rjust(len(place[0]))
    return data[: place.start()] + word + data[place.end() :]


def _lost_line(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def _moved_line(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    lines.insert(rng.randrange(len(lines)), lines[rng.randrange(len(lines))])
    return b"\n".join(lines)


def _integer(data: bytes, rng: random.Random) -> bytes:
    """An integer of a binary file is another one."""
    at = 4 * rng.randrange(max(1, min(len(data) // 4, rng.choice((16, 10**6)))))
    value = rng.choice((0, 1, -1, 2**31 - 1, -(2**31), 2**30, 65536, 24, 48, 7))
    return data[:at] + value.to_bytes(4, rng.choice(("little", "big")), signed=True) + data[at + 4 :]


def put(damage: Damage, folder: Path) -> None:
    """Write the files of a damaged format."""
    for name, data in damage.files.items():
        (folder / name).write_bytes(data)
