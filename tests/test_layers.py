"""The walls of the house: a room imports only rooms that stand above it in ARCHITECTURE.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import spanloop

HOUSE = Path(spanloop.__file__).parent
ROOMS = (
    "errors", "types", "math", "joints", "flexible", "model", "zoo", "topology", "sweeps", "algorithms", "compiler",
    "kernels", "loops", "reach", "contacts", "derivatives", "linear", "dynamics", "papers", "bridges", "jax", "torch",
    "trajectory", "simulation", "envs", "studies", "exports", "view", "cli",
)  # fmt: skip
FACE = {  # run.plot, run.continued, model.page, modes.page, linear.bode, flexible.fewer: one line each, imported late
    "flexible/__init__.py": ("dynamics",),
    "model/model.py": ("view",),
    "dynamics/dynamics.py": ("view",),
    "trajectory/trajectory.py": ("view", "simulation"),
    "linear/linear_model.py": ("view",),
    "linear/modes.py": ("view",),
    "studies/study.py": ("view",),
}
FILES = sorted(p for p in HOUSE.rglob("*.py") if p not in (HOUSE / "__init__.py", HOUSE / "__main__.py"))


def room_of(path: Path) -> str:
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> Iterator[tuple[str, int]]:
    """Rooms that a file imports, with the line, also from within functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}:{node.lineno}: relative import; write the whole name"
            whole = node.module == "spanloop"
            names = [f"spanloop.{a.name}" for a in node.names] if whole else [node.module or ""]
        else:
            continue
        for name in names:
            first, _, rest = name.partition(".")
            room = rest.partition(".")[0]
            if first == "spanloop" and room and room != "__version__":
                yield room, node.lineno


def test_a_file_imports_only_its_own_room_and_rooms_above_it():
    wrong = []
    for path in FILES:
        name, room = path.relative_to(HOUSE).as_posix(), room_of(path)
        allowed = ROOMS[: ROOMS.index(room) + 1] + FACE.get(name, ())
        wrong += [f"{name}:{line} imports {other}" for other, line in imported_rooms(path) if other not in allowed]
    assert not wrong


def test_no_folder_has_more_than_sixteen_files():
    folders = {p.parent for p in FILES}
    crowded = {f.relative_to(HOUSE).as_posix(): n for f in folders if (n := len(list(f.glob("*.py")))) > 16}
    assert not crowded


def test_every_room_is_in_the_list():
    assert {room_of(p) for p in FILES} <= set(ROOMS)


def test_algorithms_do_not_know_the_compiler():
    found = {(p.name, r) for p in FILES if room_of(p) == "algorithms" for r, _ in imported_rooms(p)}
    assert not {x for x in found if x[1] in ("compiler", "kernels")}


PAPERS = HOUSE / "algorithms" / "papers"


def imported_modules(path: Path) -> Iterator[str]:
    """Modules of spanloop that a file imports, by their whole names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("spanloop"):
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                is_module = (HOUSE.parent / module.replace(".", "/")).with_suffix(".py").exists()
                yield module if is_module else node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("spanloop"))


def test_a_papers_method_calls_no_solver_of_ours():
    """What papers share with us is geometry, closure rows and algebra; each solves by its own equations."""
    solvers = {f"spanloop.algorithms.tree.{n}" for n in ("articulated_body", "composite_body", "newton_euler")}
    solvers |= {f"spanloop.algorithms.closed.{n}" for n in ("elimination", "dense", "correction")}
    calling = {p.relative_to(PAPERS).as_posix(): solvers & set(imported_modules(p)) for p in PAPERS.rglob("*.py")}
    assert not {name: found for name, found in calling.items() if found}


def test_the_compiler_does_not_know_mechanics():
    mechanics = {"joints", "model", "zoo", "topology", "sweeps", "algorithms"}
    found = {(p.name, r) for p in FILES if room_of(p) == "compiler" for r, _ in imported_rooms(p)}
    assert not {x for x in found if x[1] in mechanics}


def test_only_the_command_line_reaches_the_view():
    reaching = {room_of(p) for p in FILES for r, _ in imported_rooms(p) if r == "view"}
    assert reaching <= {"view", "cli", "model", "dynamics", "trajectory", "linear", "studies"}


def test_the_list_of_rooms_is_the_one_in_the_architecture_page():
    page = (Path(__file__).parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    first_cells = [line.split("|")[1].strip(" `/") for line in page.splitlines() if line.startswith("| `")]
    rooms = [name.removesuffix(".py") for name in first_cells]
    assert tuple(rooms[: len(ROOMS)]) == ROOMS
