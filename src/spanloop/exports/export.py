"""`sl.export`: functions and motions of a model as files that need no Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spanloop.errors import InputError, nearest
from spanloop.exports.control_inputs import refuse_too_few, with_numbers
from spanloop.kernels.spec import checked_model
from spanloop.model import Model

Writer = Callable[..., Path]


def export(
    model: Model,
    functions: str | Path | Sequence[str] | Mapping[str, Any],
    path: str | Path | None = None,
    **options: Any,
) -> Path:
    """Write functions or a motion of a model as code for other programs; the ending of the file names the form.

    | file | form | options |
    |---|---|---|
    | .c | C99, a source and a header (docs/c_export.md) | name, real, parameters, forces, step, ... |
    | .fmu | FMI 3.0, a motion for Co-Simulation and Model Exchange (docs/fmu.md) | docs/fmu.md lists them |
    | .mjs | an ES module with WebAssembly inside, for node and browsers (docs/wasm.md) | as .c, without name and real |
    | .wasm | the WebAssembly module alone, described in its section `spanloop` (docs/wasm.md) | as .mjs |

    Arguments:
        functions: names of functions as of sl.compile, or {name in the file: {"function": ..., options of sl.compile}};
            they may be left out: sl.export(model, "arm.c", step=1e-3).
        path: the file; the ending chooses the form.
        name: prefix of all names in C; by default the file's. Only of .c.
        real: "double" or "float". Only of .c.
        parameters, forces, frame, frames, expressed_in, points, method, near, on_singular, regroup, open_chain,
            lowering: as of sl.compile, for those of the functions that take them. forces may also be what acts on the
            motion, a table or a function as of sl.simulate.
        step: length of the steps of a motion [s]; without it there is none.
        integrator, q, v, limits, closures, events, contacts, start: of the motion, as of sl.simulate.
        controller: a traced one, as of sl.simulate; a function of the file, and acts in the motion.
        inputs: of the controller: numbers at the start, [0.0, 1.0], names, ["target"] (zero), or {"target": 5.0}.

    Returns:
        The path of the file.

    Raises:
        InputError: an option or name does not fit. UnsupportedError: a function has no form in this file.
        FileError: the file cannot be written; nothing is left half written.

    Example:
        >>> path = sl.export(sl.zoo.pendulum(2), ["forward_dynamics"], "arm.c", step=1e-3, integrator="rk4")
        >>> path.with_suffix(".h").exists()
        True
    """
    checked_model(model, "export")
    where: Any = functions if path is None else path
    names: Any = () if path is None else functions
    if not isinstance(where, str | Path):
        raise InputError(f"export: the file is {where!r}; expected a name that ends in {endings()}")
    ending = Path(where).suffix.lower()
    if ending not in _writers():
        raise InputError(f"export: {where} ends in {ending!r}; expected {endings()}")
    chosen = _chosen(names, where)
    writer = _writers()[ending]
    _refuse_unknown(writer, ending, options)
    if ending != ".fmu":  # whose variables have names
        options = with_numbers(model, options)
    try:
        return writer(model, chosen, Path(where), **options)
    except IndexError:
        refuse_too_few(model, options.get("controller"), options.get("inputs"))
        raise


def _chosen(names: Any, where: str | Path) -> Mapping[str, Any] | tuple[Any, ...]:
    """The functions as a table or a tuple; InputError for what is neither a name nor names."""
    if isinstance(names, Mapping):
        return names
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, Iterable):
        raise InputError(
            f"export: functions is {names!r}; expected names of functions, as ['forward_dynamics'], or a table of "
            f"them. A motion alone: sl.export(model, {str(where)!r}, step=1e-3)"
        )
    return tuple(names)


def _refuse_unknown(writer: Writer, ending: str, options: Mapping[str, Any]) -> None:
    """InputError for an option that this kind of file does not take; writers with **options check them themselves."""
    taken = inspect.signature(writer).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken):
        return
    known = [p.name for p in taken if p.kind is inspect.Parameter.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            raise InputError(f"export: a {ending} file takes no {name}=; {nearest(name, known)}")


def _writers() -> dict[str, Writer]:
    """The function that writes each kind of file: (model, functions, path, **options) -> path."""
    from spanloop.exports.c_writer import write_c
    from spanloop.exports.fmu.fmu_writer import write_fmu
    from spanloop.exports.web.es_module import write_es_module, write_wasm

    return {".c": write_c, ".fmu": write_fmu, ".mjs": write_es_module, ".wasm": write_wasm}


def endings() -> str:
    """The endings of the files that can be written."""
    return ", ".join(_writers())
