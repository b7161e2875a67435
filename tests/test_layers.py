"""The walls of the house: a room imports only rooms that stand above it in ARCHITECTURE.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import spanloop

HOUSE = Path(spanloop.__file__).parent
ROOMS = (
    "errors", "types", "math", "joints", "model", "zoo", "topology", "sweeps", "algorithms", "compiler",
    "compiling", "loops", "dynamics", "results", "simulation", "view", "cli",
)  # fmt: skip
FACE = {"results/trajectory.py": ("view",)}  # run.plot and run.view: one line each, imported when asked for
FILES = sorted(p for p in HOUSE.rglob("*.py") if p != HOUSE / "__init__.py")


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


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(HOUSE).as_posix())
def test_a_file_imports_only_its_own_room_and_rooms_above_it(path):
    room = room_of(path)
    allowed = ROOMS[: ROOMS.index(room) + 1] + FACE.get(path.relative_to(HOUSE).as_posix(), ())
    wrong = [f"line {line}: {other}" for other, line in imported_rooms(path) if other not in allowed]
    assert not wrong, f"{path.relative_to(HOUSE)} (room {room}) imports {'; '.join(wrong)}"


def test_every_room_is_in_the_list():
    assert {room_of(p) for p in FILES} <= set(ROOMS)


def test_algorithms_do_not_know_the_compiler():
    found = {(p.name, r) for p in FILES if room_of(p) == "algorithms" for r, _ in imported_rooms(p)}
    assert not {x for x in found if x[1] in ("compiler", "compiling")}


def imported_algorithms(path: Path) -> Iterator[str]:
    """Files of the room algorithms that a file imports: "tree.placing", ..."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("spanloop.algorithms"):
            package = (node.module or "").removeprefix("spanloop.algorithms").lstrip(".")
            for alias in node.names:
                file = HOUSE / "algorithms" / package.replace(".", "/") / f"{alias.name}.py"
                yield f"{package}.{alias.name}" if file.exists() else package
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("spanloop.algorithms")]
            yield from (name.removeprefix("spanloop.algorithms.") for name in names)


# where the links are, and where in the world: no dynamics in them
GEOMETRY = {
    "tree.placing",
    "tree.drifting",
    "quantities.kinematics",
    "closed.closing",
    "closed.setting",
}
# what closures say of a state: their rows, which of them never matter; velocities, no dynamics
CLOSURES = {"closed.bias", "closed.closing", "closed.rows", "closed.setting", "quantities.energy"}
CLOSED_METHODS = (
    "arms_on_object", "closed_columns", "closed_topology", "closure_rows", "constraint_step", "general_joints",
    "grasp_rates", "grasps",
    "recursive_arms", "simple_closed_chain",
)  # fmt: skip
# the method of unit vectors is inverse dynamics, asked again and again
CALLED_IN_THE_PAPER = {"unit_vector": {"tree.newton_euler"}}


@pytest.mark.parametrize("path", sorted((HOUSE / "algorithms" / "papers").glob("*.py")), ids=lambda p: p.stem)
def test_a_papers_method_uses_no_other_algorithm(path):
    """Each stands alone, but for what its paper itself calls."""
    allowed = (
        GEOMETRY | CALLED_IN_THE_PAPER.get(path.stem, set()) | (CLOSURES if path.stem in CLOSED_METHODS else set())
    )
    found = {name for name in imported_algorithms(path) if not name.startswith("papers.")}
    assert found <= allowed


def test_papers_methods_use_only_their_own_papers_files():
    own = {
        "virtual_work": {"papers.blocks", "papers.loose_links", "papers.splitting"},
        "loose_links": {"papers.blocks"},
        "convective_inertia": {"papers.complement_matrices"},
        "inertia_factors": {"papers.complement_matrices"},
        "leg_elimination": {"papers.legs"},
        "leg_drift": {"papers.legs", "papers.leg_elimination"},
        "leg_completion": {"papers.legs", "papers.leg_elimination", "papers.parallel_legs"},
        "parallel_legs": {"papers.legs", "papers.leg_drift", "papers.leg_elimination"},
        "parallel_matrices": {"papers.legs", "papers.leg_elimination"},
        "simple_chains": {"papers.general_edges"},
        "general_joints": {"papers.closure_rows", "papers.general_edges", "papers.simple_chains"},
        "reference_member": {"papers.factors", "papers.general_joints"},
        "simple_closed_chain": {
            "papers.closure_rows", "papers.drifting", "papers.general_edges", "papers.general_joints",
            "papers.reference_member", "papers.simple_chains",
        },
        "filtering": {"papers.admittance"},
        "grasps": {"papers.closure_rows"},
        "grasp_rates": {"papers.closure_rows"},
        "arms_on_object": {"papers.factors", "papers.grasps"},
        "recursive_arms": {
            "papers.closure_rows", "papers.drifting", "papers.factors", "papers.filtering", "papers.grasps",
        },
        "closure_admittance": {"papers.closure_rows", "papers.general_joints"},
        "closed_columns": {
            "papers.closure_admittance", "papers.drifting", "papers.filtering", "papers.general_joints",
        },
        "constraint_step": {
            "papers.closure_admittance", "papers.factors", "papers.general_joints", "papers.reference_member",
        },
        "closed_topology": {
            "papers.closure_admittance", "papers.closure_rows", "papers.drifting", "papers.factors", "papers.filtering",
            "papers.general_joints", "papers.grasps", "papers.reference_member",
        },
    }  # fmt: skip
    for path in (HOUSE / "algorithms" / "papers").glob("*.py"):
        found = {name for name in imported_algorithms(path) if name.startswith("papers.")}
        assert found == own.get(path.stem, set()), path.stem


def test_the_compiler_does_not_know_mechanics():
    mechanics = {"joints", "model", "zoo", "topology", "sweeps", "algorithms"}
    found = {(p.name, r) for p in FILES if room_of(p) == "compiler" for r, _ in imported_rooms(p)}
    assert not {x for x in found if x[1] in mechanics}


def test_only_the_command_line_reaches_the_view():
    reaching = {room_of(p) for p in FILES for r, _ in imported_rooms(p) if r == "view"}
    assert reaching <= {"view", "cli", "results"}


def test_the_list_of_rooms_is_the_one_in_the_architecture_page():
    page = (Path(__file__).parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    first_cells = [line.split("|")[1].strip(" `/") for line in page.splitlines() if line.startswith("| `")]
    rooms = [name.removesuffix(".py") for name in first_cells]
    assert tuple(rooms[: len(ROOMS)]) == ROOMS
