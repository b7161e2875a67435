"""`Contacts`: the contacts of a run by name, each with its quantities at samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import InputError, in_one_line, nearest, printable
from spanloop.trajectory.contacts import contact_states
from spanloop.trajectory.contacts.contact_samples import ContactSamples, Points, contact_samples, is_alike, number_type
from spanloop.trajectory.contacts.contact_states import OPEN, SLIPS, SLOW, STICKS
from spanloop.trajectory.contacts.contact_work import ContactWork, contact_work
from spanloop.trajectory.events import EventTable
from spanloop.types import Array

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

_SHOWN = 40  # contacts that are printed


class Contacts(Mapping[str, "ContactResult"]):
    """The contacts of a run by name; run.contacts["crate.3"] is a point of a contact with several. Print it.

    Forces are means over the step that ends at a sample: they hold the impulse of an impact in that step. At the first
    sample, to which no step leads, they are those of robot.contact_solution.
    """

    def __init__(self, run: Trajectory):
        self._run = run
        models = dict.fromkeys([run.model, *(s.model for s in run.segments if s.model is not None)])
        self._names = tuple(dict.fromkeys(c.name for m in models for c in m.contacts))
        self._points = tuple(dict.fromkeys(name for m in models for c in m.contacts for name in c.point_names))

    @cached_property
    def samples(self) -> ContactSamples:
        """Gaps, axes, slips and forces of all points, where all segments have the contacts of the run's model."""
        return contact_samples(self._run)

    @cached_property
    def work(self) -> ContactWork:
        """What contacts do between samples; as `samples`."""
        return contact_work(self._run)

    @property
    def motion_is_unique(self) -> Array:
        """Whether the motion (..., n) is the only one possible: False where points that share their forces in more than
        one way slip in different directions, so that friction depends on the shares."""
        pieces = (self._run,) if is_alike(self._run) else self._run.pieces
        parts = [piece.contacts._unique[1] for piece in pieces]
        joined: Array = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        return joined

    @cached_property
    def _unique(self) -> tuple[Array, Array]:
        return contact_states.uniqueness(self._run, self.samples)

    def __getitem__(self, name: str) -> ContactResult:
        if name not in self:
            known = (*self._names, *self._points)
            hint = nearest(name, known) if known else "it has none"
            raise InputError(f"model {self._run.model.name!r} has no contact {name!r}; {hint}")
        return ContactResult(self._run, name)

    def __contains__(self, name: object) -> bool:
        return name in self._names or name in self._points

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{len(self)} contact{'' if len(self) == 1 else 's'} of {self._run!r}>"

    def __str__(self) -> str:
        if not len(self):
            return "no contacts"
        rows: list[tuple[str, ...]] = [
            ("contact", "points", "open", "sticks", "slips", "least gap", "largest force", "unique")
        ]
        rows += [_row(self[name]) for name in self._names[:_SHOWN]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(f"{x:<{w}}" for x, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        more = [f"and {len(self) - _SHOWN} more"] if len(self) > _SHOWN else []
        return printable("\n".join([*lines, *more]))


def _row(one: ContactResult) -> tuple[str, ...]:
    """Name, points, share of samples in each state, smallest gap, largest normal force, uniqueness."""
    state = one.state[one.state != ""]
    shares = [f"{100.0 * np.mean(state == word):.3g} %" if state.size else "-" for word in (OPEN, STICKS, SLIPS)]
    gap, force = (float(np.nanmin(one.gap)), float(np.nanmax(one.normal_force, initial=0.0)))
    alone = "yes" if one.unique.all() else "no"
    return in_one_line(one.name), str(len(one)), *shares, f"{gap:.3g} m", f"{force:.4g} N", alone


@dataclass(frozen=True)
class ContactResult:
    """A contact of a run, or one of its points; arrays over samples, batch axes first, NaN after a run's end.

    A contact with several points has what they do together: sums of forces, the centre of pressure, the state of all.
    contact[3] is its fourth point, len(contact) their number.
    """

    run: Trajectory
    name: str

    def __len__(self) -> int:
        """Number of points."""
        return max(len(self._numbers(piece)) for piece in self._pieces)

    def __getitem__(self, k: int) -> ContactResult:
        """One of its points."""
        names = [n for piece in self._pieces for n in self._point_names(piece)]
        names = list(dict.fromkeys(names))
        if not isinstance(k, int | np.integer) or not -len(names) <= k < len(names):
            raise InputError(f"contact {self.name!r} has {len(names)} points; there is no point {k!r}")
        return ContactResult(self.run, names[k])

    def __iter__(self) -> Iterator[ContactResult]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return f"<contact {self.name!r} of {self.run!r}>"

    @property
    def gap(self) -> Array:
        """The gap (..., n) [m], negative where the surfaces overlap; of several points the smallest."""
        return self._joined(lambda piece, own: own.gap.min(axis=-1), ())

    @property
    def force(self) -> Array:
        """The force on a (..., n, 3) in world axes [N]."""
        return self._joined(lambda piece, own: own.force.sum(axis=-2), (3,))

    @property
    def normal_force(self) -> Array:
        """The force along the normal (..., n) [N], of several points the sum; never negative."""
        return self._joined(lambda piece, own: own.normal_force.sum(axis=-1), ())

    @property
    def friction_force(self) -> Array:
        """The part of the force on a in the tangent plane (..., n, 3), world axes [N]."""

        def rubbing(piece: Trajectory, own: ContactSamples) -> np.ndarray:
            return (own.force - own.normal_force[..., None] * own.axes[..., 0, :]).sum(axis=-2)

        return self._joined(rubbing, (3,))

    @property
    def torque(self) -> Array:
        """The torque on a about `point` (..., n, 3) in world axes [N m]: of torsional and rolling friction, and of the
        forces of several points."""

        def turning(piece: Trajectory, own: ContactSamples) -> np.ndarray:
            lever = own.point - _centre(own)[..., None, :]
            return (own.torque + np.cross(lever, own.force)).sum(axis=-2)

        return self._joined(turning, (3,))

    @property
    def point(self) -> Array:
        """Where it acts (..., n, 3) in the world [m]: midway between the surfaces; of several points the centre of
        pressure, or the point of the smallest gap where none pushes."""
        return self._joined(lambda piece, own: _centre(own), (3,))

    @property
    def normal(self) -> Array:
        """The normal from b to a (..., n, 3) in world axes, at the point of the smallest gap."""
        return self._joined(lambda piece, own: _nearest(own, own.axes[..., 0, :]), (3,))

    @property
    def slip(self) -> Array:
        """The velocity of a relative to the surface of b (..., n, 3) in world axes [m/s]; of several points that of the
        fastest which is closed, or of the smallest gap where none is."""

        def fastest(piece: Trajectory, own: ContactSamples) -> np.ndarray:
            closed = contact_states.is_closed(own)
            speed = np.where(closed, np.linalg.norm(own.slip, axis=-1), -np.inf)
            chosen = np.take_along_axis(own.slip, speed.argmax(axis=-1)[..., None, None], axis=-2)[..., 0, :]
            return np.where(np.any(closed, axis=-1)[..., None], chosen, _nearest(own, own.slip))

        return self._joined(fastest, (3,))

    @property
    def state(self) -> Array:
        """ "open", "sticks" or "slips" (..., n); "" after a run's end. Of several points "slips" where one does, "open"
        where all are.

        A point is open where it does not push in the step that ends at the sample, or bounces off in it. It slips with
        a force at the edge of its friction cone (to 1e-6) and a speed along the surface of more than 1e-9 m/s, of
        runs in float32 1e-5 m/s.
        """

        def worded(piece: Trajectory, own: ContactSamples) -> np.ndarray:
            found = contact_states.states(own, SLOW[number_type(piece)])
            some = np.where((found == SLIPS).any(axis=-1), SLIPS, STICKS)
            return np.where((found == "").any(axis=-1), "", np.where((found == OPEN).all(axis=-1), OPEN, some))

        return self._joined(worded, (), "")

    @property
    def unique(self) -> Array:
        """Whether its force (..., n) is the only one that explains the motion; of several points whether all are.

        False: what all contacts do together is fixed, and how they share it is not. The shares are those nearest to
        the last ones. run.contacts.motion_is_unique tells whether the motion is fixed.
        """

        def of_points(piece: Trajectory, own: ContactSamples) -> np.ndarray:
            return np.all(piece.contacts._unique[0][..., self._numbers(piece)], axis=-1)

        return self._joined(of_points, (), True)

    @property
    def events(self) -> EventTable:
        """The impacts of its points, where they are located (contacts="events"), with impulse and energy; print it."""
        table, names = self.run.events, [name for piece in self._pieces for name in self._point_names(piece)]
        return table.kept(np.isin(table.name, names) & (table.kind == "impact"), np.zeros(len(table), bool))

    # ---- samples of its points

    @property
    def _pieces(self) -> tuple[Trajectory, ...]:
        return (self.run,) if is_alike(self.run) else self.run.pieces

    def _point_names(self, piece: Trajectory) -> tuple[str, ...]:
        points = Points.of(piece.model)
        return tuple(points.names[k] for k in self._numbers(piece))

    def _numbers(self, piece: Trajectory) -> np.ndarray:
        """Numbers of its points among those of a piece's model."""
        p = Points.of(piece.model)
        if self.name in p.contacts:
            return np.flatnonzero(p.owner == p.contacts.index(self.name))
        return np.array([k for k, name in enumerate(p.names) if name == self.name], int)

    def _joined(
        self,
        compute: Callable[[Trajectory, ContactSamples], np.ndarray],
        shape: tuple[int, ...],
        nothing: float | str | bool = np.nan,
    ) -> Array:
        """compute(piece, its points there) of all pieces, (..., n, *shape); nothing: where there is no such contact."""
        parts = []
        for piece in self._pieces:
            mine = self._numbers(piece)
            none = np.full((*piece.batch, len(piece), *shape), nothing)
            parts.append(compute(piece, piece.contacts.samples.chosen(mine)) if len(mine) else none)
        joined: Array = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=len(self.run.batch))
        return joined


def _nearest(own: ContactSamples, values: np.ndarray) -> np.ndarray:
    """Of values (..., n, points, 3) those of the smallest gap."""
    found: np.ndarray = np.take_along_axis(values, own.gap.argmin(axis=-1)[..., None, None], axis=-2)[..., 0, :]
    return found


def _centre(own: ContactSamples) -> np.ndarray:
    """The centre of pressure (..., n, 3), or the point of the smallest gap where none pushes."""
    weight = own.normal_force / np.maximum(own.normal_force.sum(axis=-1, keepdims=True), 1e-300)
    pushed = np.any(own.normal_force > 0.0, axis=-1, keepdims=True)
    return np.where(pushed, np.sum(weight[..., None] * own.point, axis=-2), _nearest(own, own.point))
