"""Response to forces at frames: of the frames (Λ⁻¹ = J M⁻¹ Jᵀ) and of the joints (M⁻¹ Jᵀ). O(n) a frame, without M.

[Rodriguez, Jain & Kreutz, 3.10, A.5 and A.6; Kreutz & Rodriguez, 6.3 and 6.10; Lilly & Orin's Λ⁻¹ and Ω]

Two departures. A joint's DoF are eliminated one at a time. A.5 is mended for branches: frames on links k and m
meet at their closest common ancestor c, Ω(k, m) = ψ(c, k)* Υ(c) ψ(c, m); the paper has 0 there. Driven joints do not
give way.

| symbol | shape | meaning | frame |
|---|---|---|---|
| T | Transform | pose of the link | world |
| P | 6×6 | articulated inertia | link |
| dofs | (s, G, D⁻¹) | motion, gain P s D⁻¹, 1/(sᵀ P s + armature) of each DoF | link |
| z | 6 Forces by frame | what is left at the link of unit forces at the frame: ψ(link, frame) B | link |
| Upsilon | Admittance | acceleration of the link under a force at it, the diagonal of Ω | link |
| a | 6 Motions by frame | acceleration of the link due to unit forces at the frame | link |
"""

from __future__ import annotations

from spanloop.algorithms.tree.kinematics import poses
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.admittance import Admittance
from spanloop.math.inertia import ArticulatedInertia
from spanloop.math.spatial import Force, Motion, dof_acceleration, gain, power
from spanloop.math.vector3 import add, cross
from spanloop.sweeps import Program, Union, Values, inward, outward
from spanloop.sweeps.tested_pivots import PivotTest
from spanloop.topology.tree_paths import meeting as meeting_link

_UNITS = tuple(tuple(float(i == j) for j in range(6)) for i in range(6))


def operational_inverse_inertia(mechanism, frames: tuple[str, ...]) -> Program:
    """Λ⁻¹ (6k, 6k) of k frames: accelerations [angular; linear] due to forces [torque; force] at them, world axes."""
    links = [mechanism.anchors[name].link for name in frames]
    meeting = {(i, j): meeting_link(mechanism.parents, links[i], links[j]) for i in range(len(links)) for j in range(i)}
    wanted = _between(mechanism, links, meeting)

    def result(m, here, world):
        n = 6 * len(frames)
        whole = [[0.0] * n for _ in range(n)]
        for i, name in enumerate(frames):
            if links[i] >= 0:
                own = _columns(m, here[links[i]], name)
                _fill(whole, i, i, own, [here[links[i]].Upsilon @ f for f in own])
        for (i, j), c in meeting.items():
            if c >= 0:
                _fill(whole, i, j, here[c].at_link[i], [here[c].Upsilon @ f for f in here[c].at_link[j]])
        return [x for row in whole for x in row]

    def gather(link, here, arriving):
        return propagate(link, here, arriving, mechanism, frames, lambda f: link.number in wanted[f])

    tested = PivotTest(mechanism)
    return Program(
        "operational_inverse_inertia",
        ("q",),
        (
            *placed(()),
            *tested.sweeps,
            poses(),
            inward(articulate, P=ArticulatedInertia()),
            inward(gather, z=Union()),
            outward(admit, Upsilon=Admittance()),
        ),
        result,
        (6 * len(frames), 6 * len(frames)),
        regroup=True,
        demands=tested.demands,
    )


def force_response(mechanism, frames: tuple[str, ...]) -> Program:
    """M⁻¹ Jᵀ (nv, 6k) of k frames: joint accelerations due to forces [torque; force] at them, world axes."""

    def gather(link, here, arriving):
        return propagate(link, here, arriving, mechanism, frames, lambda f: True)

    def result(m, here, world):
        return [x for h in here for row in h.accelerations for x in row]

    tested = PivotTest(mechanism)
    return Program(
        "force_response",
        ("q",),
        (
            *placed(()),
            *tested.sweeps,
            poses(),
            inward(articulate, P=ArticulatedInertia()),
            inward(gather, z=Union()),
            outward(respond, a=((Motion(),) * 6,) * len(frames)),
        ),
        result,
        (mechanism.nv, 6 * len(frames)),
        regroup=True,
        demands=tested.demands,
    )


def pivots(mechanism, tested: PivotTest) -> Program:
    """What each tested pivot must exceed, and the pivot: a row for each DoF of the links in tested.noise."""
    return Program(
        "pivots",
        ("q",),
        (*placed(()), *tested.sweeps, inward(articulate, P=ArticulatedInertia())),
        result=lambda m, here, world: [x for pair in tested.pairs(m, here, world) for x in pair],
        shape=(sum(map(len, tested.noise.values())), 2),
    )


def articulate(link, here, arriving) -> tuple[Values, Values]:
    """Articulated inertia, and the gains of the joint's DoF."""
    P = here.inertia.articulated() + arriving.P
    dofs, pivots, gains = [], [], []
    for s, armature in zip(link.free(here.S), link.armature, strict=False):
        U = P @ s
        D = power(s, U) + armature
        pivots.append(D)
        G, inverse_pivot = gain(U, D)  # P H* D⁻¹ and D⁻¹ = (H P H*)⁻¹      [A.1]
        dofs.append((s, G, inverse_pivot))
        gains.append(G)
        P = P.less(G, U)
    return Values(dofs=tuple(dofs), pivots=pivots, pivot_gains=gains), Values(P=P.carried(here.X))


def propagate(link, here, arriving, mechanism, frames, wanted) -> tuple[Values, Values]:
    """z = ψ z + x̂: unit forces at frames, as they arrive at the link and as the joint passes them on.   [A.6]"""
    z = Union(arriving.z)
    for k, name in enumerate(frames):
        if mechanism.anchors[name].link == link.number and wanted(k):
            z[k] = _columns(mechanism, here, name)
    passed = {k: columns for k, columns in z.items() if wanted(k)}
    felt: dict = {k: [] for k in passed}  # e = s* z, by DoF
    for s, G, _ in here.dofs:
        for k, columns in passed.items():
            e = [power(s, f) for f in columns]
            felt[k].append(e)
            passed[k] = [f - G * x for f, x in zip(columns, e, strict=True)]
    sent = Union({k: [here.X @ f for f in columns] for k, columns in passed.items()})
    return Values(at_link=dict(z), felt=felt), Values(z=sent)


def admit(link, here, parent) -> Values:
    """Υ = ψ* Υ₋ ψ + H* D⁻¹ H.   [A.5, 6.10]"""
    Upsilon = parent.Upsilon.carried(here.X)
    for s, G, inverse_pivot in reversed(here.dofs):
        Upsilon = Upsilon.joined(s, G, inverse_pivot)
    return Values(Upsilon=Upsilon)


def respond(link, here, parent) -> Values:
    """a = ψ* a₋ + H* ν and the joint's accelerations ν − K* a₋, for every unit force.   [A.6]"""
    a, accelerations = [], [[] for _ in here.S]  # type: ignore[var-annotated]
    for k, columns in enumerate(parent.a):
        moved = []
        for i, m in enumerate(columns):
            m = here.X.T @ m
            for f in reversed(range(len(here.dofs))):
                s, G, inverse_pivot = here.dofs[f]
                nu = here.felt[k][f][i] * inverse_pivot if k in here.felt else 0.0
                acceleration = dof_acceleration(nu, G, s, m)
                m = m + s * acceleration
                accelerations[f].append(acceleration)
            moved.append(m)
        a.append(tuple(moved))
    given = [[0.0] * (6 * len(parent.a))] * (0 if here.dofs else len(here.S))  # a driven joint keeps its own
    return Values(a=tuple(a), accelerations=given or accelerations)


def _columns(mechanism, here, name: str) -> list[Force]:
    """Unit forces at a frame in world axes, seen at its link: B, one column a component."""
    inside, R = mechanism.anchors[name].position, here.T.rotation.T
    columns = []
    for unit in _UNITS:
        f = Force.of(unit).turned(R)
        columns.append(Force(add(f.angular, cross(inside, f.linear)), f.linear))
    return columns


def _fill(whole, i: int, j: int, left: list[Force], right: list[Motion]) -> None:
    """The block of frames i and j, and its mirror image."""
    for r, f in enumerate(left):
        for c, m in enumerate(right):
            if i != j or c <= r:
                whole[6 * i + r][6 * j + c] = whole[6 * j + c][6 * i + r] = power(m, f)


def _between(mechanism, links: list[int], meeting: dict[tuple[int, int], int]) -> list[set[int]]:
    """For each frame the links from its own to the innermost at which it meets another frame."""
    wanted: list[set[int]] = [set() for _ in links]
    for pair, c in meeting.items():
        for f in pair:
            k = links[f]
            while c >= 0 and k >= c:
                wanted[f].add(k)
                k = mechanism.links[k].parent
    return wanted
