"""Forces of contacts over a motion, as pictures draw them: an arrow at each point that touches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spanloop.view import palette
from spanloop.view.noise import weight

if TYPE_CHECKING:
    from spanloop.trajectory import Trajectory
    from spanloop.trajectory.contacts.contact_results import ContactResult

OPEN, STICKS, SLIPS, BOUNCES = 0, 1, 2, 3
WORDS = {STICKS: "sticking", SLIPS: "slipping", BOUNCES: "bouncing"}
COLORS = {STICKS: palette.STICKS, SLIPS: palette.SLIPS, BOUNCES: palette.EVENTS["impact"]}
OF_WEIGHT = 0.5  # length of an arrow as large as the weight, in sizes of the mechanism
LONGEST = 0.6  # length of an arrow at most: that of an impact would leave the picture
HELD = 0.05  # s, for which an impact between two pictures is shown
SHORTEST = 0.004  # of an arrow that is drawn


@dataclass(frozen=True, eq=False)
class ContactForces:
    """Of each contact point, by name: where it is (n, points, 3) [m], the force on its shape a (n, points, 3) [N], both
    in world axes, and OPEN, STICKS, SLIPS or BOUNCES (n, points), at n samples; full [N]: the force of an arrow as long
    as OF_WEIGHT."""

    names: tuple[str, ...]
    points: np.ndarray
    forces: np.ndarray
    states: np.ndarray
    full: float

    def arrows(self, size: float) -> np.ndarray:
        """Arrows (n, points, 3) [m] of a mechanism of this size [m]; 0 where nothing touches."""
        lengths = np.linalg.norm(self.forces, axis=-1, keepdims=True)
        scale = size * np.minimum(OF_WEIGHT / self.full, LONGEST / np.maximum(lengths, 1e-300))
        found = np.where(lengths * scale > SHORTEST * size, self.forces * scale, 0.0)
        return np.asarray(np.where(self.states[..., None] == OPEN, 0.0, found))

    def at(self, own: np.ndarray, times: np.ndarray) -> ContactForces:
        """At other times (k,) [s], from samples at own times (n,): of the samples since the time before, or of the last
        HELD seconds, one with a force that is more than twice the last one's, so that no impact is lost."""
        starts, ends = spans(own, times)
        starts = np.minimum(np.maximum(starts, np.searchsorted(own, times - HELD)), ends - 1)
        lengths = np.linalg.norm(self.forces, axis=-1)
        peaks = np.array([a + lengths[a:b].argmax(axis=0) for a, b in zip(starts, ends, strict=True)])
        columns, last = np.arange(len(self.names)), (ends - 1)[:, None]
        rows = np.where(lengths[peaks, columns] > 2.0 * lengths[last, columns], peaks, last)
        points, forces, states = (x[rows, columns] for x in (self.points, self.forces, self.states))
        return replace(self, points=points, forces=forces, states=states)

    def sample(self, k: int) -> ContactForces:
        """Sample k alone."""
        return replace(self, points=self.points[[k]], forces=self.forces[[k]], states=self.states[[k]])

    def words(self) -> str:
        """What the points of the first sample do."""
        counts = [(int((self.states[0] == state).sum()), word) for state, word in WORDS.items()]
        found = [f"{n} {word}" for n, word in counts if n]
        return f"contact points: {', '.join(found)}" if found else "nothing touches"


def spans(own: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of samples at own times (n,) the first of those since the time before, and the one after the last, for each of
    other times (k,) [s]."""
    ends = np.clip(np.searchsorted(own, times, "right"), 1, len(own))
    return np.minimum(np.concatenate([[0], ends[:-1]]), ends - 1), ends


def peaks(values: np.ndarray, own: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The largest of values (n,) at own times (n,) since the time before, for each of other times (k,) [s]."""
    starts, ends = spans(own, times)
    return np.array([np.fmax.reduce(values[a:b]) for a, b in zip(starts, ends, strict=True)])


def contact_forces(run: Trajectory) -> ContactForces | None:
    """The forces of one run's contacts at its samples; None of a run without, or that ignored them."""
    if all(s.contact_forces is None for s in run.segments):
        return None
    found = [point for contact in run.contacts.values() for point in contact]
    points, forces = (np.stack([getattr(p, name) for p in found], axis=1) for name in ("point", "force"))
    words = np.stack([p.state for p in found], axis=1)
    bounces = (words == "open") & (np.nan_to_num(forces) != 0.0).any(axis=-1)  # open at the end of its step
    states = STICKS * (words == "sticks") + SLIPS * (words == "slips") + BOUNCES * bounces
    return of_points(tuple(p.name for p in found), points, forces, states, weight(run.model))


def of_points(
    names: tuple[str, ...], points: np.ndarray, forces: np.ndarray, states: np.ndarray, heavy: float
) -> ContactForces:
    """Forces of contacts. heavy [N]: the weight of all bodies; arrows are shorter where usual forces are larger."""
    points, forces = np.nan_to_num(points), np.nan_to_num(forces)
    largest = np.linalg.norm(forces, axis=-1).max(axis=-1, initial=0.0)
    pressing = largest[largest > 0.0]
    usual = float(np.median(pressing)) if len(pressing) else 0.0
    return ContactForces(names, points, forces, states, max(heavy, usual) or 1.0)


def slip_speed(contact: ContactResult) -> np.ndarray:
    """The speed of a contact along its surface (..., n) [m/s]; NaN while it is open."""
    slip, normal = contact.slip, contact.normal
    along = slip - normal * np.sum(normal * slip, axis=-1, keepdims=True)
    touches = np.isin(contact.state, ("sticks", "slips"))
    return np.asarray(np.where(touches, np.linalg.norm(along, axis=-1), np.nan))
