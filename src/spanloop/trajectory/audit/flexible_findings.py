"""Findings on flexible bodies: strain, slopes, truncated modes, and modes that the steps do not resolve.

| name | value | bound fails because |
|---|---|---|
| strain energy | largest strain of a fibre, with the energy of the body | the material is no longer linear |
| slopes | largest angle by which a section turns | shapes of second order do not follow it |
| truncation | energy in the last mode of a direction, of the body's largest strain energy | the next mode is missing |
| modes | energy of vibrations that steps do not resolve, of what is at stake | steps damp or distort them |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spanloop.dynamics.strain import mode_energies, vibration_energies
from spanloop.flexible.deformation import largest_strain, largest_turn, more_pieces, turns_are_known
from spanloop.flexible.finite_element_body import FiniteElementBody
from spanloop.flexible.modes import Modal
from spanloop.model.flexible_bodies.pieces import modal, mode_joints
from spanloop.model.parts import Joint
from spanloop.trajectory.audit.balances import balance
from spanloop.trajectory.audit.findings import NOT_JUDGED, NOT_WELL, Finding, verdict_on
from spanloop.trajectory.audit.stiffening_findings import stiffening_findings

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

RESOLVED = 0.5  # step times frequency, at most: 12 steps in a period
_FIXED = ("rk4", "euler", "midpoint", "implicit")  # integrators with steps of one length
_NAMED = 4  # modes that a sentence names


def flexible_findings(
    run: Trajectory, strain: float, slope: float, truncation: float, modes: float
) -> Iterator[Finding]:
    """The findings on a run of one model; none without flexible bodies."""
    bodies = mode_joints(run.model)
    if bodies:
        yield _strain(run, bodies, strain)
        yield _slopes(run, bodies, slope)
        yield from _truncation(run, bodies, truncation)
        yield from _modes(run, modes)
        yield from stiffening_findings(run)


Bodies = dict[str, tuple[Joint, ...]]


def _strain(run: Trajectory, bodies: Bodies, bound: float) -> Finding:
    """The largest strain of a fibre, and the largest strain energy of each body."""
    largest = {name: float(np.nanmax(run.strain_energy[name], initial=0.0)) for name in bodies}
    value, name, when = _worst(run, bodies, largest_strain)
    energies = ", ".join(
        f"{x:.3g} J in {body!r}" for body, x in sorted(largest.items(), key=lambda pair: -pair[1])[:_NAMED]
    )
    if not any(hasattr(modal(j).source, "sections_at") for joints in bodies.values() for j in joints):
        sentence = f"Bodies hold strain energy of up to {energies}; strains of finite elements are not computed."
        return Finding("strain energy", value, bound, "1", NOT_JUDGED, sentence)
    sentence = (
        f"Bodies hold strain energy of up to {energies}; fibres are strained by about {value:.2g} at most, in "
        f"{name!r}{when} (bound {bound:g})."
    )
    verdict = verdict_on(value, bound, 0.0)
    if verdict == NOT_WELL:
        sentence += " Hardly any material is linear that far, and what bends so much is beyond small strains."
    return Finding("strain energy", value, bound, "1", verdict, sentence)


def _slopes(run: Trajectory, bodies: Bodies, bound: float) -> Finding:
    value, name, when = _worst(run, bodies, largest_turn)
    what = "Nodes" if isinstance(modal(bodies[name][0]).source, FiniteElementBody) else "Sections"
    sentence = (
        f"{what} turn by up to {value:.2g} rad against the root of their piece, in {name!r}{when} (bound {bound:g} "
        "rad)."
    )
    verdict = verdict_on(value, bound, 0.0)
    unknown = [name for name, joints in bodies.items() if not all(turns_are_known(modal(j)) for j in joints)]
    if verdict == NOT_WELL:
        sentence += f" Shapes of second order do not follow that. {more_pieces(modal(bodies[name][0]))}."
    elif unknown:
        verdict = NOT_JUDGED
        sentence += f" Of {', '.join(map(repr, unknown))} no place is known that turns: name interfaces where it bends."
    return Finding("slopes", value, bound, "rad", verdict, sentence)


def _worst(run: Trajectory, bodies: Bodies, of) -> tuple[float, str, str]:
    """The largest value of a measure of modal coordinates, the body that has it, and when."""
    best = (0.0, next(iter(bodies)), "")
    for name, joints in bodies.items():
        for j in joints:
            values = np.nan_to_num(of(modal(j), run.q[..., run.model.q_slice(j.name)]))
            k = np.unravel_index(int(np.argmax(values)), values.shape)
            if values[k] > best[0]:
                best = float(values[k]), name, _when(run, k)
    return best


def _truncation(run: Trajectory, bodies: Bodies, bound: float) -> Iterator[Finding]:
    """The energy in the last mode of each direction that has several; of directions with one, not judged.

    Static shapes of nodes follow forces there whatever modes they are combined to: of them only vibration counts.
    Natural modes approach such shapes one by one: of them strain energy counts.
    """
    several: list[tuple[float, str]] = []
    alone: list[tuple[float, str]] = []
    for name, joints in bodies.items():
        body = np.nanmax(run.strain_energy[name], axis=-1)
        for j in joints:
            strains = _is_cantilever({name: (j,)})
            found = mode_energies(run.model, j.name, run.q) if strains else vibration_energies(run.model, j.name, run.v)
            energies = np.nanmax(found, axis=-2)
            for last, count in _last_modes(modal(j)):
                share = float(np.max(energies[..., last] / np.maximum(body, np.finfo(float).tiny)))
                words = f"mode {modal(j).mode_names[last]} of {j.name!r}"
                (several if count > 1 else alone).append((share if body.max() > 0.0 else 0.0, words))
    value, words = max(several, default=(0.0, ""))
    if several and (value > bound or max(alone, default=(0.0, ""))[0] <= bound):
        sentence = (
            f"The last mode of a direction, {words}, has {value:.2g} of the body's strain energy (bound {bound:g})."
        )
        verdict = verdict_on(value, bound, 0.0)
        if verdict == NOT_WELL:
            made = "from_matrices" if "finite elements" in _kinds(bodies) else "beam"
            sentence += f" Modes that follow it are missing: give more modes= to sl.flexible.{made}"
            sentence += ", or its basis='craig-bampton'." if _is_cantilever(bodies) else "."
        yield Finding("truncation", value, bound, "1", verdict, sentence)
    elif alone:
        value, words = max(alone)
        sentence = (
            f"The only mode of a direction, {words}, has {value:.2g} of the body's strain energy (bound {bound:g})."
        )
        verdict = verdict_on(value, bound, 0.0)
        if verdict == NOT_WELL:
            verdict, sentence = NOT_JUDGED, f"{sentence} Nothing tells whether one is enough: compare with modes=2."
        yield Finding("truncation", value, bound, "1", verdict, sentence)


def _kinds(bodies: Bodies) -> set[str]:
    """What the bodies are made from."""
    elements = [isinstance(modal(j).source, FiniteElementBody) for joints in bodies.values() for j in joints]
    return {"finite elements" if x else "beam" for x in elements}


def _is_cantilever(bodies: Bodies) -> bool:
    """Whether a body has modes without static shapes, which follow forces and moments at nodes slowly."""
    sources = (modal(j).source for joints in bodies.values() for j in joints)
    return any(getattr(getattr(x, "beam", x), "basis", "") in ("cantilever", "free") for x in sources)


def _last_modes(kind: Modal) -> list[tuple[int, int]]:
    """The number of the last mode of each direction, and how many it has."""
    directions = [name.rstrip("0123456789") for name in kind.mode_names]
    return [
        (max(k for k, x in enumerate(directions) if x == d), directions.count(d)) for d in dict.fromkeys(directions)
    ]


# ---- modes and steps


@dataclass(frozen=True)
class _Unresolved:
    """A mode that steps do not resolve: step times frequency, the largest energy of its vibration [J], words."""

    turn: float
    energy: float
    words: str


def _unresolved(run: Trajectory) -> list[_Unresolved]:
    """The modes whose frequency times the step is above RESOLVED, with fixed steps.

    ω² = k w, w the diagonal of the inverse mass matrix at the first sample, loops open: the fastest that a mode can be.
    A mode that follows slowly vibrates with next to no energy, ½ (k/ω²) η̇²; one that rings does with all of it.
    """
    if run.settings.get("integrator") not in _FIXED or not run.step > 0.0:
        return []
    finite = np.isfinite(run.q).all(axis=-1)
    if not finite.any():
        return []
    w = np.abs(np.diag(np.linalg.pinv(run.robot.mass_matrix(run.q[finite][0]), hermitian=True)))
    out = []
    for j in run.model.joints:
        if not j.kind.bends:
            continue
        at = run.model.v_slice(j.name)
        rates = np.nanmax(np.abs(run.v[..., at]).reshape(-1, j.kind.nv), axis=0)
        for k, (stiffness, mobility) in enumerate(zip(j.stiffness, w[at], strict=True)):
            turn = run.step * np.sqrt(stiffness * mobility)
            if turn > RESOLVED:
                energy = float(0.5 * rates[k] ** 2 / mobility)
                out.append(_Unresolved(float(turn), energy, f"{modal(j).mode_names[k]} of {j.name!r}"))
    return out


def _modes(run: Trajectory, bound: float) -> Iterator[Finding]:
    found = _unresolved(run)
    if run.settings.get("integrator") not in _FIXED:
        return
    if not found:
        sentence = f"Steps of {run.step:g} s resolve all modes: step times frequency is at most {RESOLVED:g}."
        yield Finding("modes", 0.0, bound, "1", verdict_on(0.0, bound, 0.0), sentence)
        return
    stake = float(np.nanmax(balance(run).scale, initial=np.finfo(float).tiny)) if not _driven_loops(run) else np.nan
    value = sum(x.energy for x in found) / stake
    named = sorted(found, key=lambda x: -x.energy)
    names = ", ".join(x.words for x in named[:_NAMED]) + (
        f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    )
    turns = " to ".join(dict.fromkeys(f"{x:.2g}" for x in (min(y.turn for y in found), max(y.turn for y in found))))
    sentence = (
        f"Steps of {run.step:g} s do not resolve {len(found)} {'modes' if len(found) > 1 else 'mode'} (step times "
        f"frequency {turns}): {names}. What vibrates there holds up to {value:.2g} of the energy at stake (bound "
        f"{bound:g})."
    )
    verdict = verdict_on(value, bound, 0.0)
    if verdict == NOT_WELL:
        sentence += f" Steps of {RESOLVED / named[0].turn * run.step:.1g} s follow {named[0].words}. {_ADVICE}"
    yield Finding("modes", value, bound, "1", verdict, sentence)


_ADVICE = (
    "Or start from the shape at rest (robot.static_deflection), leave fast modes out, or give the beam damping=, with "
    "which what rings because it was let go fades."
)


def damped_modes(run: Trajectory) -> str:
    """A sentence on energy that implicit steps take from vibrations; "" where nothing bends."""
    if run.settings.get("integrator") != "implicit" or not any(j.kind.bends for j in run.model.joints):
        return ""
    return " Implicit steps damp vibrations, fast ones at once: see the finding 'modes', or take shorter steps."


def _driven_loops(run: Trajectory) -> bool:
    return any(x.driven for x in run.model.loops)


def _when(run: Trajectory, k) -> str:
    index = tuple(int(i) for i in k)
    which = f" of run {index[:-1] if len(index) > 2 else index[0]}" if len(index) > 1 else ""
    return f", at {run.times[index[-1]]:g} s{which}"
