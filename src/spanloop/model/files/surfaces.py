"""Surfaces of collision shapes in SDF, and in the elements that Gazebo, PyBullet and Drake add to URDF.

In all of them two surfaces that touch have one friction: in Gazebo (ODE) the smaller one, in PyBullet the product, in
Drake the harmonic mean.
"""

from __future__ import annotations

import math

from spanloop.errors import FileError
from spanloop.model.files.load_notes import INVALID, LoadNotes
from spanloop.model.files.xml_reader import Element, inside, parsed_numbers
from spanloop.model.parts import Surface

GAZEBO_FRICTION = 1.0  # SDF's default of mu
PYBULLET_FRICTION = 0.5  # Bullet's default of lateral_friction
NEVER_BOUNCES = 10.0  # m/s: a threshold of restitution beyond all speeds; SDF's default is 100000
PATCH = 3.0 * math.pi / 16.0  # torsional moment of Hertz's pressure on a round patch, by µ, radius and force
PYBULLET = {  # our name, the file's
    "friction": "lateral_friction",
    "torsion": "spinning_friction",
    "rolling": "rolling_friction",
    "restitution": "restitution",
}


def collision_surface(collision: Element, owner: str, notes: LoadNotes, default: bool) -> Surface | None:
    """The surface of a <collision>: Drake's proximity properties, or a <surface>; default: as in sdf_surface."""
    properties = inside(collision, "drake:proximity_properties")
    for tag in ("drake:mu_dynamic", "drake:mu_static"):
        try:
            friction = value_inside(properties, tag, math.inf)
        except FileError as error:
            notes.add("surfaces that cannot be read left out", str(error))
            return None
        if not math.isinf(friction):
            return Surface(_checked("friction", friction, owner, notes), rule="harmonic")
    return sdf_surface(collision.one("surface"), owner, notes, default)


def sdf_surface(element: Element | None, owner: str, notes: LoadNotes, default: bool = True) -> Surface | None:
    """The surface in a <surface>; what SDF specifies if there is none, or nothing if not default."""
    if element is None and not default:
        return None
    try:
        friction, torsion = _friction(element, owner, notes)
        return Surface(friction, torsion, None, _bounce(element, owner, notes), "minimum")
    except FileError as error:
        notes.add("surfaces that cannot be read left out", str(error))
        return None


def _friction(surface: Element | None, owner: str, notes: LoadNotes) -> tuple[float, float]:
    """Friction and torsion [m]; of two directions the smaller friction."""
    ode, torsional = inside(surface, "friction", "ode"), inside(surface, "friction", "torsional")
    mu = value_inside(ode, "mu", GAZEBO_FRICTION)
    friction = _checked("friction", min(mu, value_inside(ode, "mu2", mu)), owner, notes)
    if value_inside(ode, "mu2", mu) != mu:
        notes.add("friction that differs between two directions, the smaller is read", owner)
    if value_inside(torsional, "use_patch_radius", 1.0) == 0.0:
        return friction, 0.0  # the patch of a hard contact has no radius
    radius, coefficient = value_inside(torsional, "patch_radius", 0.0), value_inside(torsional, "coefficient", 1.0)
    return friction, _checked("torsion", PATCH * radius * coefficient, owner, notes)


def _bounce(surface: Element | None, owner: str, notes: LoadNotes) -> float:
    bounce = inside(surface, "bounce")
    restitution = _checked("restitution", value_inside(bounce, "restitution_coefficient", 0.0), owner, notes)
    threshold = value_inside(bounce, "threshold", 1e5)
    if restitution and threshold > NEVER_BOUNCES:
        notes.add(f"restitution above a threshold of {threshold:g} m/s only, read as 0", owner)
        return 0.0
    return restitution


def gazebo_surfaces(robot: Element, notes: LoadNotes) -> dict[str, Surface]:
    """The surfaces by link that the <gazebo reference="link"> elements of a URDF describe."""
    found: dict[str, Surface] = {}
    for element in robot.all("gazebo"):
        link = element.attributes.get("reference", "").strip()
        own = _of_gazebo(element, f"link {link!r} ({element.where})", notes)
        if link and own is not None:
            found[link] = _completed(own, found.get(link))
    return found


def _of_gazebo(element: Element, owner: str, notes: LoadNotes) -> Surface | None:
    described = sdf_surface(inside(element, "collision", "surface"), owner, notes, default=False)
    if described is not None and inside(element, "collision", "surface", "friction") is None:
        described = Surface(restitution=described.restitution, rule="minimum")
    try:
        values = [value_inside(element, tag, math.inf) for tag in ("mu1", "mu2")]
    except FileError as error:
        notes.add("surfaces that cannot be read left out", str(error))
        return described
    if all(map(math.isinf, values)):
        return described
    if len(set(values)) > 1 and math.inf not in values:
        notes.add("friction that differs between two directions, the smaller is read", owner)
    return _completed(Surface(_checked("friction", min(values), owner, notes), rule="minimum"), described)


def pybullet_surface(link: Element, notes: LoadNotes) -> Surface | None:
    """The surface of a link's <contact>, which PyBullet reads."""
    contact = next(link.all("contact"), None)
    if contact is None:
        return None
    owner = f"link {link.text('name')!r} ({contact.where})"
    try:
        found = {ours: value_inside(contact, theirs, math.inf) for ours, theirs in PYBULLET.items()}
    except FileError as error:
        notes.add("surfaces that cannot be read left out", str(error))
        return None
    if any(True for tag in ("stiffness", "damping") for _ in contact.all(tag)):
        notes.add("<stiffness> and <damping> of a <contact> left out; with_contact takes them", owner)
    values = {name: _checked(name, x, owner, notes) for name, x in found.items() if not math.isinf(x)}
    return Surface(**{"friction": PYBULLET_FRICTION} | values, rule="product")  # type: ignore[arg-type]


def _completed(a: Surface, b: Surface | None) -> Surface:
    """The surface with what only the other one describes."""
    names = ("friction", "torsion", "rolling", "restitution")
    values = {name: getattr(a, name) if getattr(a, name) is not None else getattr(b, name, None) for name in names}
    return Surface(**values, rule=a.rule)  # type: ignore[arg-type]


def value_inside(parent: Element | None, tag: str, default: float) -> float:
    """The number between the tags <tag> of an element, or in its attribute `value`."""
    element = inside(parent, tag)
    if element is None:
        return default
    text = element.attributes.get("value", element.content).strip().lower()
    text = {"true": "1", "false": "0"}.get(text, text)
    return parsed_numbers(text, 1, f"{element.where}: <{tag}>")[0]


def _checked(name: str, value: float, owner: str, notes: LoadNotes) -> float:
    most = 1.0 if name == "restitution" else math.inf
    if not 0.0 <= value <= most:
        notes.add(f"{INVALID} {name} of a surface that is negative or above its bound, read as the bound", owner)
    return min(max(value, 0.0), most)
