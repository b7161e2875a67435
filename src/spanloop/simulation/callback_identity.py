"""The identity of a Python callback: a hash of its code and of all values that it reads.

The same function, defined again by the same script, has the same identity in another process. The values are those of
its defaults, closure, attributes and globals, and in turn those of the functions and objects among them. Functions of
installed libraries stand for themselves, with the library's version. What a library keeps inside (a connection) is not
seen; of the sources of numbers outside a process's own values (clocks, NumPy's random numbers, the environment) those
that the user's code reads by name are found (`outside_sources`).
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import io
import pickle
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

_PASSED_OVER = ("__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__", "__static_attributes__")

# modules whose numbers differ from process to process, and such attributes of other modules
_OUTSIDE = ("random", "time", "datetime", "secrets", "uuid", "numpy.random", "socket", "subprocess")
_OUTSIDE_NAMES: dict[str, tuple[str, ...]] = {
    "os": ("environ", "environb", "getenv", "urandom", "getrandom", "times", "getpid", "popen", "listdir", "read"),
    "numpy": ("load", "loadtxt", "genfromtxt", "fromfile", "memmap"),
    "builtins": ("input", "open"),
}
_SYS_CONSTANTS = ("float_info", "maxsize", "version_info", "stdout", "stderr")
_BETWEEN = ("CACHE", "EXTENDED_ARG", "NOP", "PUSH_NULL")  # instructions between a name and its attribute


class NotIdentifiable(Exception):
    """A callback that holds something which cannot be compared with that of another process."""


def identity(function: Callable[..., Any]) -> str:
    """A hash over a function's code and values; NotIdentifiable if one of them cannot be compared."""
    return _described(function)[0]


def outside_sources(function: Callable[..., Any]) -> list[str]:
    """Names of the clocks, generators of random numbers and the like that a function reads, sorted."""
    return _described(function)[1]


def _described(function: Callable[..., Any]) -> tuple[str, list[str]]:
    out = io.BytesIO()
    described = _Description(out, protocol=5)
    described.fast = True  # what is shared inside one process does not matter
    try:
        described.dump(function)
    except Exception as error:  # whatever an object raises that cannot be pickled
        raise NotIdentifiable(str(error).partition("\n")[0] or type(error).__name__) from None
    found = described.outside
    longest = {name for name in found if not any(x.startswith(f"{name}.") for x in found)}
    return hashlib.sha256(out.getvalue()).hexdigest(), sorted(longest)


class _Description(pickle.Pickler):
    """A pickle in which functions, classes and modules are described by their content instead of their names."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.seen: dict[int, tuple[int, Any]] = {}  # the objects are held, so that their numbers stay theirs
        self.outside: set[str] = set()

    def persistent_id(self, x: Any) -> Any:
        if isinstance(x, set | frozenset):
            return "set", sorted(x, key=repr)
        if isinstance(x, types.CodeType):
            return "code", _code(x)
        if isinstance(x, types.ModuleType):
            if x.__name__ in _OUTSIDE:
                self.outside.add(x.__name__)
            return "module", x.__name__, _version(x.__name__) or _content(x)
        if isinstance(x, property | staticmethod | classmethod):
            return type(x).__name__, [getattr(x, n, None) for n in ("fget", "fset", "__func__")]
        if is_dataclass(x) and not isinstance(x, type) and x.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            return "values", type(x), [getattr(x, field.name) for field in fields(x)]
        if isinstance(x, types.MemberDescriptorType):
            return "slot", x.__name__
        if not isinstance(x, types.FunctionType | type):
            return None
        if id(x) in self.seen:
            return "again", self.seen[id(x)][0]
        self.seen[id(x)] = len(self.seen), x
        return self._function(x) if isinstance(x, types.FunctionType) else _class(x)

    def _function(self, x: types.FunctionType) -> tuple[Any, ...]:
        version = _version(x.__module__)
        names = () if version else sorted(set(_global_names(x.__code__)))
        known = {n: x.__globals__[n] for n in names if n in x.__globals__}
        cells = [_inside(cell) for cell in x.__closure__ or ()]
        if not version:
            held = dict(zip(x.__code__.co_freevars, cells, strict=True))
            attributes = dict(_attributes(x.__code__, vars(builtins) | x.__globals__ | held))
            self.outside |= {name for name in attributes if _is_outside(*name.rpartition(".")[::2])}
            self.outside |= {n for n, y in (known | held).items() if _comes_from_outside(y)}
            known |= {n: y for n, y in attributes.items() if y is not _UNKNOWN and _is_own(n)}
        values = x.__defaults__, x.__kwdefaults__, cells, known, x.__dict__
        return "function", x.__qualname__, version, x.__code__, *values


def _class(x: type) -> tuple[Any, ...]:
    version = _version(x.__module__)
    if version:
        return "class", x.__module__, x.__qualname__, version
    return "class", x.__qualname__, x.__bases__, {n: y for n, y in vars(x).items() if n not in _PASSED_OVER}


def _code(x: types.CodeType) -> list[Any]:
    sizes = x.co_argcount, x.co_kwonlyargcount, x.co_posonlyargcount, x.co_flags
    names = x.co_names, x.co_varnames, x.co_freevars, x.co_cellvars
    return [sys.version_info[:2], sizes, names, x.co_code, x.co_exceptiontable, x.co_consts]


def _global_names(code: types.CodeType) -> Iterator[str]:
    """Names of the globals that code reads, that of functions inside it too."""
    for x in dis.get_instructions(code):
        if x.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield x.argval
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            yield from _global_names(x)


_UNKNOWN = object()


def _attributes(code: types.CodeType, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Attributes of modules that code reads, "module.name", with their values, and what it imports itself."""
    module: types.ModuleType | None = None
    for x in dis.get_instructions(code):
        if x.opname in _BETWEEN:
            continue
        found: Any = None
        if x.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"):
            found = values.get(x.argval)
            if found is not None and found is getattr(builtins, x.argval, None):
                yield f"builtins.{x.argval}", _UNKNOWN
        elif x.opname in ("LOAD_ATTR", "LOAD_METHOD") and module is not None:
            found = getattr(module, x.argval, _UNKNOWN)
            yield f"{module.__name__}.{x.argval}", found
        elif x.opname == "IMPORT_NAME":  # what becomes of it is not followed: all names of the code may be its
            yield from ((f"{x.argval}.{name}", _UNKNOWN) for name in code.co_names)
        module = found if isinstance(found, types.ModuleType) else None
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            yield from _attributes(x, values)


def _is_outside(module: str, name: str) -> bool:
    """Whether a module's attribute may differ from process to process, or from call to call."""
    if module == "sys":
        return name not in _SYS_CONSTANTS
    return module in _OUTSIDE or f"{module}.{name}" in _OUTSIDE or name in _OUTSIDE_NAMES.get(module, ())


def _comes_from_outside(x: Any) -> bool:
    """Whether a value that code reads is a function or class of such a module: from time import perf_counter."""
    name, module = getattr(x, "__name__", ""), getattr(x, "__module__", None) or ""
    if module.startswith("numpy.random."):
        return callable(x)
    return bool(name) and (module in _OUTSIDE or _is_outside("os" if module in ("posix", "nt") else module, name))


def _is_own(attribute: str) -> bool:
    """Whether "module.name" belongs to a module of the user."""
    return not _version(attribute.rpartition(".")[0])


def _inside(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return "empty"


def _version(module: str) -> str:
    """The version of the installed library that a module belongs to; "" for the user's own modules."""
    top = module.partition(".")[0]
    found = sys.modules.get(top)
    file = getattr(found, "__file__", None)
    if top in sys.stdlib_module_names or top == "builtins":
        return sys.version
    installed = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    if top != "spanloop" and not (file and installed & set(Path(file).parents)):
        return ""
    return str(getattr(found, "__version__", "installed"))


def _content(module: types.ModuleType) -> str:
    """A hash of a module's file."""
    file = getattr(module, "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""
