"""Events in batches: `python benchmarks/events_in_batches.py [story ...]`.

4096 runs of 1000 steps of 1 ms (RK4), each with 4 events at moments of its own: the time with events over the time of
the same mechanism without them. Stories: arm (a six-joint arm catches a floating object, lets it go, catches it again,
lets it go again: conditions on its first joint), timed (the same at given times), forced (conditions of releases also
read the force in the loop), string (a bob on a string that goes slack and catches, twice: its force and its length are
watched). A loop that is open is projected in runs without events; with events it is not while all runs of a vector have
it open. Some runs are repeated alone and must have the same bits. Times are medians (quartiles) of this run, processor
time of one thread, variants interleaved.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from timing import calls, compare

import spanloop as sl

RUNS, STEPS, H, SAMPLE = 4096, 1000, 1e-3, 0.1
WANTED = 4  # events of each run
ALONE = (0, 1, 2, 5, 1003, 2048, 4094, 4095)  # runs that are repeated alone
QUIET = sl.Integrator("rk4", progress=False)


@dataclass(frozen=True)
class Story:
    """A mechanism, states of all runs at the start, and events."""

    model: sl.Model
    q: np.ndarray
    v: np.ndarray
    events: Callable[[slice], list]  # of some runs
    without: str  # what the time without events is the time of
    active: tuple[str, ...]  # loops that are closed at the start

    def run(self, runs: slice, with_events: bool = True) -> sl.Trajectory:
        options = {"events": self.events(runs)} if with_events else {}
        return sl.simulate(
            self.model,
            self.q[runs],
            self.v[runs],
            duration=STEPS * H,
            step=H,
            sample=SAMPLE,
            limits="ignore",
            integrator=QUIET,
            closures=sl.Closures(active_loops=self.active),
            **options,
        )


def arm(given_by: str) -> Story:
    """A six-joint arm without weight beside an object of 5 kg, which it holds rigidly where it finds it."""
    model = sl.zoo.arms_with_object(1)
    model = replace(model, gravity=(0.0, 0.0, 0.0), loops=tuple(replace(x, switchable=True) for x in model.loops))
    rng = np.random.default_rng(16)
    q, v = np.tile(sl.zoo.arms_with_object_start(1), (RUNS, 1)), 0.1 * rng.normal(size=(RUNS, model.nv))
    turn = model.v_slice("arm1_turn").start
    v[:, turn] = rng.uniform(2.0, 3.0, RUNS)
    start = float(q[0, model.q_slice("arm1_turn").start])
    moments = 0.25 * np.arange(WANTED) + rng.uniform(0.01, 0.24, (RUNS, WANTED))

    def events(runs: slice) -> list:
        kinds = (sl.events.Attach, sl.events.Release) * (WANTED // 2)
        options = ({"capture": True}, {}) * (WANTED // 2)
        if given_by == "time":
            given = [{"at": moments[runs, k]} for k in range(WANTED)]
        else:
            reads = [given_by == "force" and kind is sl.events.Release for kind in kinds]
            given = [{"when": _passes(start + SPACING * (k + 1), reads[k])} for k in range(WANTED)]
        return [kind("holding1", **a, **b) for kind, a, b in zip(kinds, given, options, strict=True)]

    return Story(model, q, v, events, "the same model, its loop open", ())


def _passes(angle: float, reads_force: bool) -> Callable:
    """A condition: the first joint passes an angle [rad], a nanoradian later for every newton along z."""
    if reads_force:
        return lambda t, q, v, f: angle + 1e-9 * f["holding1"][5] - q["arm1_turn"]
    return lambda t, q, v: angle - q["arm1_turn"]


def string() -> Story:
    """A bob of 1 kg on a string of 0.1 m, pushed so that it almost reaches the top."""
    b = sl.Builder("bob").body("slide").body("bob", mass=1.0, inertia=(1e-3, 1e-3, 1e-3))
    b.prismatic("x", "world", "slide", axis="x").prismatic("z", "slide", "bob", axis="z")
    b.loop("bob", "world", sl.joints.Distance(LENGTH), name="string", switchable=True)
    model = b.build()
    rng = np.random.default_rng(17)
    q, v = np.zeros((RUNS, 2)), np.zeros((RUNS, 2))
    q[:, 1] = -LENGTH
    v[:, 0] = np.sqrt(rng.uniform(4.3, 4.9, RUNS) * 9.81 * LENGTH)
    one_sided = [sl.events.OneSided("string", sign=-1)]
    return Story(model, q, v, lambda _: one_sided, "the same model, its loop closed", ("string",))


LENGTH = 0.1  # m
SPACING = 0.15  # rad
STORIES = {
    "arm": lambda: arm("angle"),
    "timed": lambda: arm("time"),
    "forced": lambda: arm("force"),
    "string": string,
}


def differing(story: Story, run: sl.Trajectory) -> list[int]:
    """Runs that have other bits alone: in samples, final states or events."""
    out = []
    for k in ALONE:
        alone, mine = story.run(slice(k, k + 1))[0], run[k]
        same = all(np.array_equal(getattr(alone, n), getattr(mine, n)) for n in ("times", "q", "v"))
        table = [(getattr(a, n)) for n in ("time", "impulse", "v_after", "q") for a in (alone.events, mine.events)]
        same = same and all(np.array_equal(a, b) for a, b in zip(table[::2], table[1::2], strict=True))
        if not same:
            out.append(k)
    return out


def main(names: list[str]) -> None:
    print(f"{RUNS} runs of {STEPS} steps of {1e3 * H:g} ms; samples every {1e3 * SAMPLE:g} ms; ns a step of a run")
    print("| story | events a run | with events | without | ratio | runs with other bits alone | without: |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        story = STORIES[name]()
        every = slice(None)
        run = story.run(every)
        assert all(x.finished for x in run.outcomes), run.outcomes[0]
        count = np.bincount(run.events.run, minlength=RUNS)
        t = compare(
            {
                "with": calls("run(every)", run=story.run, every=every),
                "without": calls("run(every, False)", run=story.run, every=every),
            },
            RUNS * STEPS,
            samples=5,
        )
        low, high = t["with"].low / t["without"].high, t["with"].high / t["without"].low
        ratio = f"{t['with'].median / t['without'].median:.2f} ({low:.2f}-{high:.2f})"
        events = f"{count.mean():.2f} ({count.min()}-{count.max()})"
        other = differing(story, run) or "none"
        print(
            f"| {name} | {events} | {t['with'].text()} | {t['without'].text()} | {ratio} | {other} | {story.without} |"
        )


if __name__ == "__main__":
    main(sys.argv[1:] or list(STORIES))
