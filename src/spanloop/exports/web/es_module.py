"""An ES module (.mjs): one file with a WebAssembly module inside, and a class with a method for each function."""

from __future__ import annotations

import base64
import gzip
import json
import textwrap
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from spanloop import __version__
from spanloop.errors import FileError
from spanloop.exports.c_names import comment
from spanloop.exports.web.web_module import WebFunction, WebModule
from spanloop.model import Model
from spanloop.model.files.file_io import write_file
from spanloop.model.files.own_files import MARK, own_content


def write_es_module(model: Model, functions: Sequence[str] | Mapping[str, Any], path: Path, **options: Any) -> Path:
    """Write functions and, with step=, a motion of a model as one ES module; options as of sl.export."""
    _writable(path)
    write_file(path, es_module(WebModule.of(model, functions, options), path.name).encode())
    return path


def write_wasm(model: Model, functions: Sequence[str] | Mapping[str, Any], path: Path, **options: Any) -> Path:
    """Write them as a WebAssembly module alone, whose custom section `spanloop` describes it in JSON."""
    _writable(path)
    write_file(path, WebModule.of(model, functions, options).binary())
    return path


def es_module(module: WebModule, file: str) -> str:
    """The text of the ES module; file: its name, for the comment at its head."""
    packed = base64.b64encode(gzip.compress(module.program.binary(), 9, mtime=0)).decode()
    table = json.dumps(module.table()).replace("<", "\\u003c")  # the file may stand inside a page
    parts = [_title(module, file), f"const TABLE = {table};\n", f'const WASM = "{packed}";\n\n']
    parts.append(_asset("mechanism.js"))
    if module.motion:
        parts.append(_asset("motion.js"))
    parts.append(_class(module))
    return "".join(parts)


def _title(module: WebModule, file: str) -> str:
    model, first = module.model, module.functions[0] if module.functions else None
    use = ["const mechanism = await load();"]
    if first:
        use.append(f"const answer = mechanism.{first.name}({', '.join(n for n, *_ in first.inputs)});")
    if module.motion:
        use.append("mechanism.motion.step(100);  // then motion.t, motion.q, motion.v; motion.u are its inputs")
    lines = [
        f"{MARK.capitalize()} {__version__}: {_plain(model.name)}.",
        f"{model.n_bodies} bodies, {model.nv} degrees of freedom.",
        "All numbers are SI units (m, kg, s, rad, N); the order of coordinates is in model.coordinates and model.dofs.",
        "",
        f'    import {{ load, model }} from "./{_plain(file)}";',
        *(f"    {line}" for line in use),
        "",
        "States without an answer, and steps that fail, throw a StateError with the reason.",
    ]
    return "/*\n" + "".join(f" * {line}".rstrip() + "\n" for line in lines) + " */\n"


def _class(module: WebModule) -> str:
    """The class, its constructor and `load`."""
    motion = ""
    if module.motion:
        motion = "    /** @type {Motion} the motion, at its start */\n    this.motion = new Motion(this);\n"
    methods = "".join(_method(f) for f in module.functions)
    return f"""
/** Names, units and sizes of the model: nq, nv, coordinates, dofs, bodies, neutral, parameters. */
export const model = TABLE.model;

/** Inputs and shapes of the functions; answers are flat, row by row. */
export const functions = TABLE.functions;

/** The mechanism: `await load()` makes one; each has a memory{" and a motion" if module.motion else ""} of its own. */
export class Mechanism extends Instance {{
  constructor(instance) {{
    super(instance);
{motion}  }}
{methods}}}

/** @returns {{Promise<Mechanism>}} a mechanism; the module is compiled by the first call */
export async function load() {{
  compiled ??= compile();
  return new Mechanism(await WebAssembly.instantiate(await compiled, {{}}));
}}
"""


def _method(f: WebFunction) -> str:
    names = [n for n, *_ in f.inputs]
    shown = {n: x for n, x in f.request.options.items() if n != "near" and x and x != "baked"}
    given = ", ".join(f"{n}={_plain(repr(x))}" for n, x in shown.items())
    shape = " x ".join(map(str, f.plan.shape)) or "1"
    doc = [f"{f.request.function.replace('_', ' ')}{' with ' + given if given else ''}."]
    doc += [f"@param {{ArrayLike<number>}} {n} ({size}) {note}" for n, _, size, note in f.inputs]
    doc += [f"@param {{Float64Array}} [out] ({len(f.plan.outputs)}) takes the answer"]
    doc += [f"@returns {{Float64Array}} ({shape}) {f.about}", "@throws {StateError} where the state has no answer"]
    text = "".join(f" * {comment(line)}\n" for line in doc)
    body = (
        f'{f.name}({", ".join([*names, "out"])}) {{\n  return this._call("{f.name}", [{", ".join(names)}], out);\n}}\n'
    )
    return "\n" + textwrap.indent(f"/**\n{text} */\n{body}", "  ")


def _plain(text: str) -> str:
    """Text for a comment of a module, which may stand inside a page."""
    return comment(text).replace("<", "{U+003C}")


def _asset(name: str) -> str:
    return resources.files("spanloop.exports.web").joinpath(name).read_text(encoding="utf-8")


def _writable(path: Path) -> None:
    """Refuse a path whose folder is missing, or that has a file of another program."""
    if not path.parent.is_dir():
        raise FileError(f"{path}: there is no folder {str(path.parent)!r}; make it first")
    own_content(path)
