"""`sl.flexible.beam`: the arguments of a beam, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite, pi, sqrt
from numbers import Integral, Real

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.flexible.beam import BASES, THEORIES, Beam
from spanloop.flexible.rod import DIRECTIONS
from spanloop.flexible.sections import Section

_MOST_ELEMENTS = 200
_MOST_MODES = 120  # of a piece; the time to compute them grows with the third power
_SMALLEST, _LARGEST = 1e-60, 1e60  # of any number, so that products of several are finite
_LENGTHS = (1e-9, 1e9)  # m


def beam(
    length: float,
    E: float,
    density: float,
    section: Section | Sequence[Section] | None = None,
    *,
    area: float | Sequence[float] | None = None,
    I: float | Sequence[float] | None = None,
    Iy: float | Sequence[float] | None = None,
    Iz: float | Sequence[float] | None = None,
    J: float | Sequence[float] | None = None,
    G: float | None = None,
    poisson: float = 0.3,
    modes: int | Mapping[str, int] = 1,
    basis: str = "craig-bampton",
    nodes: Mapping[str, float] | None = None,
    theory: str = "euler-bernoulli",
    elements: int = 30,
    pieces: int = 1,
    damping: float | Sequence[float] = 0.0,
) -> Beam:
    """Return a straight beam along x, to be given to a body: b.body("boom", flexible=sl.flexible.beam(...)).

    Its root is at x = 0, where the body's joint holds it; its node "tip" is at x = length. It bends in y and in z,
    twists and, if asked, stretches; a bent beam shortens, so that loads along it stiffen or soften it.

    length [m], E: Young's modulus [Pa], density [kg/m³]
    section: of sl.flexible (circle, tube, rectangle, box), or several, equally spaced from root to tip, for a tapered
        beam. Or area [m²] and second moments I, or Iy = ∫z² and Iz = ∫y² [m⁴], with the torsion constant J (Iy + Iz by
        default, that of a circle); sequences are values equally spaced from root to tip
    G: shear modulus [Pa]; E/(2 (1 + poisson)) by default
    modes: how many in each plane of bending, or by direction: {"y": 2, "z": 1, "torsion": 1, "extension": 0}. Only the
        directions named can deform. A number n is for y and z, with torsion and without extension
    basis: "craig-bampton": static shapes of the nodes, and `modes` more with the nodes held; "cantilever": the slowest
        `modes` with the root held and the nodes free; "full": all of the finite-element model
    nodes: further nodes that carry something, by name: position along x [m]
    theory: "euler-bernoulli" or "timoshenko" (shear and rotary inertia)
    elements: of each piece; pieces: bodies in series, for large bending
    damping: ratio of each mode's critical one, with the root held: for all or one each. One for a beam in pieces is
        that of its slowest mode in each direction; faster modes have more, in proportion to their frequency

    >>> boom = sl.flexible.beam(10.0, E=7e10, density=3000.0, area=4e-4, I=2e-7, modes={"y": 2}, basis="cantilever")
    >>> boom.mass, boom.frequencies.round(3)
    (12.0, array([ 3.798, 23.802]))
    """
    owner = "beam"
    total = _positive(length, f"{owner}: length", "m", *_LENGTHS)
    young = _positive(E, f"{owner}: E", "Pa")
    if not -1.0 < _number(poisson, f"{owner}: poisson", "1") < 0.5:
        raise InputError(f"{owner}: poisson is {poisson!r}; must be above -1 and below 0.5")
    if nodes is not None and not isinstance(nodes, Mapping):
        raise InputError(f"{owner}: nodes is {nodes!r}; expected positions by name, as {{'elbow': 0.4}}")
    shear = _positive(young / (2.0 * (1.0 + poisson)) if G is None else G, f"{owner}: G", "Pa")
    chosen = _modes(modes, basis, owner)
    count = _count(elements, f"{owner}: elements", 1, _MOST_ELEMENTS)
    for direction, n in chosen:
        held = 1 + len(nodes or {})
        most = 2 * count - (held * (2 if direction in "yz" else 1) if basis == "craig-bampton" else 0)
        if basis != "full" and n > most:
            raise InputError(
                f"{owner}: {n} modes in direction {direction!r}; a mesh of {count} elements has {most}. "
                "Ask for fewer, or for more elements="
            )
    if basis == "cantilever" and pieces != 1:
        raise InputError(
            f"{owner}: pieces is {pieces!r} with basis='cantilever'; a piece carries the next one at its end, and "
            "modes with a free end do not bend as that demands. Use basis='craig-bampton', or one piece"
        )
    if theory not in THEORIES:
        raise InputError(f"{owner}: theory is {theory!r}; {nearest(str(theory), THEORIES)}")
    made = Beam(
        total,
        young,
        shear,
        _positive(density, f"{owner}: density", "kg/m³"),
        _sections(section, area, I, Iy, Iz, J, owner),
        _nodes(nodes, total, owner),
        chosen,
        basis,
        theory,
        count,
        _count(pieces, f"{owner}: pieces", 1, 64),
        _damping(damping, owner),
    )
    _check_count(made, owner)
    if len(made.damping) > 1:
        expected = sum(len(b.stiffness) for b in replace(made, damping=(0.0,)).bodies)
        if len(made.damping) != expected:
            raise InputError(
                f"{owner}: damping has {len(made.damping)} numbers; expected one, or {expected}: one for each mode"
            )
    return made


def _check_count(beam: Beam, owner: str) -> None:
    """Raise InputError for more modes of a piece than can be computed in seconds."""
    held = 1 + len(beam.nodes)
    for_direction = {"y": 2, "z": 2, "torsion": 1, "extension": 1}
    if beam.basis == "full":
        count = 2 * beam.elements * len(beam.modes)
    else:
        static = held if beam.basis == "craig-bampton" else 0
        count = sum(n + for_direction[d] * static for d, n in beam.modes)
    if count > _MOST_MODES:
        raise InputError(
            f"{owner}: some {count} modes of a piece; {_MOST_MODES} at most. Ask for fewer modes or directions, fewer "
            "elements=, or another basis than 'full'"
        )


def _sections(section, area, I, Iy, Iz, J, owner: str) -> tuple[Section, ...]:
    given = {"area": area, "I": I, "Iy": Iy, "Iz": Iz, "J": J}
    named = [name for name, x in given.items() if x is not None]
    if section is not None:
        if named:
            raise InputError(f"{owner}: section and {named[0]} are given; give one of them")
        several = isinstance(section, Sequence) and not isinstance(section, str)
        sections = (section,) if isinstance(section, Section) else tuple(section) if several else ()
        if not sections or not all(isinstance(s, Section) for s in sections):
            raise InputError(f"{owner}: section is {section!r}; expected one as sl.flexible.circle(0.01), or several")
        if len({s.is_round for s in sections}) > 1:
            raise InputError(f"{owner}: round and rectangular sections are mixed; give sections of one kind")
        for k, s in enumerate(sections):
            _check_section(s, f"{owner}: section" + (f" {k + 1}" if len(sections) > 1 else ""))
        return sections
    if area is None or (I is None and (Iy is None or Iz is None)):
        raise InputError(f"{owner}: expected section=, or area= and I= (or Iy= and Iz=)")
    if I is not None and (Iy is not None or Iz is not None):
        raise InputError(f"{owner}: I and {'Iy' if Iy is not None else 'Iz'} are given; give I, or Iy and Iz")
    columns = {"area": area, "Iy": I if Iy is None else Iy, "Iz": I if Iz is None else Iz}
    if J is not None:
        columns["J"] = J
    units = {"area": "m²", "Iy": "m⁴", "Iz": "m⁴", "J": "m⁴"}
    lists = {name: _values(x, f"{owner}: {name}", units[name]) for name, x in columns.items()}
    n = max(map(len, lists.values()))
    for name, values in lists.items():
        if len(values) not in (1, n):
            raise InputError(
                f"{owner}: {name} has {len(values)} values along the beam, another property {n}; give one or {n}"
            )
    out = []
    for k in range(n):
        of = {name: values[k if len(values) > 1 else 0] for name, values in lists.items()}
        of.setdefault("J", of["Iy"] + of["Iz"])
        size = 2.0 * sqrt(of["area"] / pi)
        out.append(Section(of["area"], of["Iy"], of["Iz"], of["J"], outline=(size, size)))
    return tuple(out)


def _check_section(s: Section, owner: str) -> None:
    """Raise InputError for a section that is written by hand and cannot be."""
    units = {"area": "m²", "Iy": "m⁴", "Iz": "m⁴", "J": "m⁴", "shear_y": "of the area", "shear_z": "of the area"}
    for name, unit in units.items():
        _positive(getattr(s, name), f"{owner}: {name}", unit)
    for x in (s.shear_y, s.shear_z):
        if x > 1.0:
            raise InputError(f"{owner}: a share of the area that carries shear is {x:g}; must be at most 1")
    if len(s.outline) != 2 or any(_number(x, f"{owner}: outline", "m") < 0.0 for x in s.outline):
        raise InputError(f"{owner}: outline is {s.outline!r}; expected width and height [m], 0 or more")


def _modes(modes, basis: str, owner: str) -> tuple[tuple[str, int], ...]:
    if basis not in BASES:
        raise InputError(f"{owner}: basis is {basis!r}; {nearest(str(basis), BASES)}")
    if isinstance(modes, Integral) and not isinstance(modes, bool):
        n = _count(modes, f"{owner}: modes", 0 if basis == "craig-bampton" else 1, 100)
        found = {"y": n, "z": n, "torsion": 1 if basis == "cantilever" else 0}
    elif isinstance(modes, Mapping) and modes:
        for name in modes:
            if name not in DIRECTIONS:
                raise InputError(f"{owner}: modes names the direction {name!r}; {nearest(str(name), DIRECTIONS)}")
        least = 0 if basis == "craig-bampton" else 1
        found = {name: _count(modes[name], f"{owner}: modes[{name!r}]", 0, 100) for name in modes}
        found = {name: n for name, n in found.items() if n >= least or basis == "full"}
    else:
        raise InputError(f"{owner}: modes is {modes!r}; expected a number, or one by direction as {{'y': 2, 'z': 2}}")
    if not found:
        raise InputError(f"{owner}: no modes are left; a beam without modes is a rigid body: use mass= and inertia=")
    return tuple((name, found[name]) for name in DIRECTIONS if name in found)


def _nodes(nodes: Mapping[str, float] | None, length: float, owner: str) -> tuple[tuple[str, float], ...]:
    out = []
    for name, x in (nodes or {}).items():
        if not isinstance(name, str) or not name or "." in name or name.isdigit():
            raise InputError(f"{owner}: a node is called {name!r}; expected a name without a dot, and no number")
        if name in ("root", "tip", "modes", "end"):
            raise InputError(f"{owner}: every beam has a {name!r} of its own; give the node another name")
        at = _number(x, f"{owner}: node {name!r}", "m")
        if not 0.0 < at < length:
            raise InputError(
                f"{owner}: node {name!r} is at {at:g} m; must be above 0 (the root) and below {length:g} m (the tip)"
            )
        out.append((name, at))
    places = [x for _, x in out]
    if len(set(places)) < len(places):
        raise InputError(f"{owner}: two nodes are at one place; attach both parts to one node")
    return (*sorted(out, key=lambda pair: pair[1]), ("tip", length))


def _damping(damping, owner: str) -> tuple[float, ...]:
    if not isinstance(damping, (Real, Sequence, np.ndarray)) or isinstance(damping, (str, bytes)):
        raise InputError(f"{owner}: damping is {damping!r}; expected ratios of critical damping, 0 to 1000")
    values = (damping,) if isinstance(damping, Real) else tuple(damping)
    found = tuple(_number(x, f"{owner}: damping", "of critical") for x in values)
    if not found or any(not 0.0 <= x <= 1e3 for x in found):
        raise InputError(f"{owner}: damping is {damping!r}; expected ratios of critical damping, 0 to 1000")
    return found


def _values(x, what: str, unit: str) -> tuple[float, ...]:
    listed = isinstance(x, (Sequence, np.ndarray)) and not isinstance(x, (str, bytes))
    values = tuple(x) if listed else (x,)
    if not values:
        raise InputError(f"{what} is empty; expected a number [{unit}], or several from root to tip")
    return tuple(_positive(v, what, unit) for v in values)


def _positive(x, what: str, unit: str, least: float = _SMALLEST, most: float = _LARGEST) -> float:
    value = _number(x, what, unit)
    if value <= 0.0:
        raise InputError(f"{what} is {value:g} {unit}; must be > 0")
    if not least <= value <= most:
        raise InputError(f"{what} is {value:g} {unit}; expected {least:g} to {most:g}")
    return value


def _number(x, what: str, unit: str) -> float:
    try:
        value = float("nan" if isinstance(x, (bool, str, bytes)) else x)
    except (TypeError, ValueError, OverflowError):
        value = float("nan")
    if value != value and not isinstance(x, float):
        raise InputError(f"{what} is {x!r}; expected a number [{unit}]") from None
    if not isfinite(value):
        raise InputError(f"{what} is {value}; expected a finite number [{unit}]")
    return value


def _count(x, what: str, least: int, most: int) -> int:
    if isinstance(x, bool) or not isinstance(x, Integral) or not least <= int(x) <= most:
        raise InputError(f"{what} is {x!r}; expected a whole number from {least} to {most}")
    return int(x)
