"""Reader of URDF, the robot description format of ROS; every error has file and line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from spanloop.errors import FileError, InputError, UnsupportedError, nearest
from spanloop.joints import Fixed, Free
from spanloop.model.files.file_io import check_parts
from spanloop.model.files.load_notes import ACTS, LoadNotes
from spanloop.model.files.mesh_paths import Folders, located
from spanloop.model.files.surfaces import gazebo_surfaces
from spanloop.model.files.urdf.links_and_joints import read_colors, read_joint, read_link, read_mimic
from spanloop.model.files.urdf.loop_elements import read_constraint, read_coupling, read_loop
from spanloop.model.files.xml_reader import Element, parse
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Body, Coupling, Joint, Loop

BASES = ("fixed", "free")
OTHER_FORMATS = {"mujoco": "MJCF (MuJoCo)", "sdf": "SDF (Gazebo)", "COLLADA": "COLLADA"}


def loads(
    data: bytes | str,
    file: str = "text.urdf",
    base: str = "fixed",
    folders: Folders | None = None,
    repair: bool = False,
) -> Model:
    """The model in the text of a URDF; inertias are not checked.

    file: the name that errors show; base: how the root link stands on the world, "fixed" or "free";
    folders: where meshes are searched for (None: they are not); repair: masses below 0 are read without their sign.
    """
    if base not in BASES:
        raise InputError(f"base is {base!r}; expected 'fixed' or 'free'")
    notes = LoadNotes(repair=repair)
    robot = parse(data.encode() if isinstance(data, str) else data, file, notes, content=True)
    _must_be_robot(robot)
    check_parts(len(robot.children), file)
    colors, surfaces = read_colors(robot, notes), gazebo_surfaces(robot, notes)
    bodies = located([read_link(e, colors, surfaces, notes) for e in robot.all("link")], folders, notes)
    elements = list(robot.all("joint"))
    joints = [read_joint(e, notes) for e in elements]
    mimics = [c for e in elements if (c := read_mimic(e, notes))]
    couplings = tuple(_followed(mimics, joints, notes))
    lost = {c.joint for c in mimics} - {c.joint for c in couplings}
    joints = [replace(j, actuated=True) if j.name in lost else j for j in joints]
    loops = [read_loop(e, notes) for e in robot.all("loop")]
    loops += [read_constraint(e, notes) for e in robot.all("constraint")]
    _unique("link", bodies)
    _unique("joint", [*joints, *loops])
    _links_exist(bodies, joints, loops)
    couplings += tuple(read_coupling(e, joints) for e in robot.all("coupling"))
    bodies, joints = _rooted(bodies, joints, base, file)
    name = robot.attributes.get("name") or Path(file).stem
    sentences = tuple(notes.sentences())
    return Model(name, tuple(bodies), tuple(joints), loops=tuple(loops), couplings=couplings, notes=sentences)


def _must_be_robot(robot: Element) -> None:
    if robot.tag in OTHER_FORMATS:
        raise UnsupportedError(f"{robot.where}: this is {OTHER_FORMATS[robot.tag]}, not URDF; {_advice(robot.tag)}")
    if robot.tag != "robot":
        raise FileError(f"{robot.where}: the outermost element is <{robot.tag}>; expected <robot>")
    if any(child.tag.startswith("xacro:include") for child in robot.children):
        raise UnsupportedError(f"{robot.where}: this is xacro; expand it first (xacro robot.xacro > robot.urdf)")
    if not any(robot.all("link")):
        empty = ". Did xacro get no robot to expand?" if "xmlns:xacro" in robot.attributes else ""
        raise FileError(f"{robot.where}: <robot> has no <link>; expected one at least{empty}")


def _advice(tag: str) -> str:
    extension = {"mujoco": ".xml", "sdf": ".sdf"}.get(tag)
    return f"rename it to {extension}" if extension else "it cannot be read"


def _unique(tag: str, parts: Iterable[Body | Joint | Loop]) -> None:
    first: dict[str, str] = {}
    for part in parts:
        if part.name in first:
            raise FileError(
                f"{part.where}: a second {tag} is called {part.name!r}, the first is at {first[part.name]}; "
                "names must be unique"
            )
        first[part.name] = part.where


def _followed(mimics: list[Coupling], joints: list[Joint], notes: LoadNotes) -> list[Coupling]:
    """The couplings of <mimic>s whose joint follows another one with one DoF; the rest are noted."""
    single = {j.name for j in joints if j.kind.nv == 1}
    good = [c for c in mimics if c.joint in single and c.source in single and c.joint != c.source]
    for c in mimics:
        if c not in good:
            notes.add(
                f"{ACTS} <mimic> of {c.source!r}, which is no other joint with one DoF", f"{c.joint!r} ({c.where})"
            )
    return good


def _links_exist(bodies: list[Body], joints: list[Joint], loops: list[Loop]) -> None:
    names = {WORLD, *(b.name for b in bodies)}
    ends: list[tuple[str, Joint | Loop, str, str]] = []
    for j in joints:
        ends += [("joint", j, "parent", j.parent), ("joint", j, "child", j.child)]
    ends += [("loop", x, "link", end) for x in loops for end in (x.a, x.b) if end != WORLD]
    for what, part, role, link in ends:
        if link not in names:
            raise FileError(
                f"{part.where}: {what} {part.name!r}: its {role} {link!r} is not a link; {nearest(link, sorted(names))}"
            )


def _rooted(bodies: list[Body], joints: list[Joint], base: str, file: str) -> tuple[list[Body], list[Joint]]:
    """The bodies and joints with the root link attached to the world; a link called 'world' is the world."""
    root = _root(bodies, joints, file)
    if root.name == WORLD:
        if base == "free":
            raise InputError(
                f"{root.where}: the root link is called 'world', so the base cannot be free; "
                "load with base='fixed' or rename the link"
            )
        return [b for b in bodies if b is not root], joints
    name, taken = "root", {j.name for j in joints}
    while name in taken:
        name += "_joint"
    kind = Free() if base == "free" else Fixed()
    return bodies, [Joint(name, kind, WORLD, root.name, actuated=base == "fixed", where=root.where), *joints]


def _root(bodies: list[Body], joints: list[Joint], file: str) -> Body:
    """The only link that is nobody's child."""
    above = {j.child: j for j in joints}
    roots = [b for b in bodies if b.name not in above]
    if not any(b.name == WORLD for b in bodies) and any(j.parent == WORLD for j in joints):
        roots = [Body(WORLD, where=file), *roots]  # the ground may be left out
    if not roots:
        raise FileError(
            f"{file}: every link is the child of a joint, so the joints form a cycle; expected one root. "
            "Leave out a joint and close the loop with model.with_loop(...)"
        )
    if len(roots) > 1:
        shown = ", ".join(f"{r.name!r} ({r.where})" for r in roots[:4]) + (", ..." if len(roots) > 4 else "")
        raise FileError(f"{file}: {len(roots)} links are no joint's child: {shown}; expected one root. Join them")
    if WORLD in above:
        raise FileError(
            f"{above[WORLD].where}: link 'world' is a joint's child, but that is the ground's name; rename it"
        )
    return roots[0]
