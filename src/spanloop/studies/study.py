"""`sl.Study`: many runs of one model, on all cores or a cluster, kept in a store as they finish."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.model import Model
from spanloop.studies import execution
from spanloop.studies.analysis.summary import Summary, summary_of
from spanloop.studies.chunk import FAILED_CODES
from spanloop.studies.definition import Prepared, prepared
from spanloop.studies.kept_spins import spin_items, warn_of_spins
from spanloop.studies.progress import Bar
from spanloop.studies.storage import store
from spanloop.studies.storage.dataset import dataset, failure_table, finished_runs, rows
from spanloop.studies.storage.store_path import store_path
from spanloop.trajectory import Trajectory

if TYPE_CHECKING:
    import xarray

    from spanloop.studies.analysis.audit import StudyAudit
    from spanloop.studies.analysis.optimization import Best
    from spanloop.studies.analysis.sensitivity import Sensitivity


class Study:
    """Many runs of one model that differ in some numbers, and what is kept of each.

    Args:
        model: a Model, or a Dynamics.
        vary: {"name": distribution} of sl.studies: Uniform, Normal, LogNormal, Triangular, Choice, Levels. Names are
            parameters ("forearm.mass", "elbow.damping"), "q.JOINT", "v.JOINT", "tau.JOINT", "input.NAME",
            "friction.CONTACT" and "restitution.CONTACT"; with `assign` any others.
        runs: how many; of a grid as many as it has points.
        seed: of the draws. A run's draws depend on the seed, its number and the order of `vary`; of design="latin" on
            `runs`, too.
        design: "random", "latin" (hypercube), "sobol", "saltelli" (for Sobol' indices) or "grid".
        table: instead of `vary` and `design` the numbers themselves: {"name": numbers}, or a .csv file with names in
            its first line.
        assign: a function {"variable": (n,)} -> {"name": (n,)} of variables of your own, as of a link's length, which
            changes several parameters. It returns no name that varies by itself.
        keep: {"name": what}, or a list: sl.studies.Last, Largest, Smallest, TimeOfLargest, TimeOfSmallest, Mean,
            Samples of a quantity, EventCount, FirstEvent. A quantity is text ("q.elbow", "abs(v.elbow)",
            "tip.position.z", "tip.speed", "tau.elbow", "energy.total") or a function (t, q, v); alone it is its Last.
        trajectories: whether q and v of all runs are kept at every sample.
        store: the folder of a Zarr store; by default results stay in memory. The same study continues where it was.
        chunk: number of runs that are computed and stored together; chosen by default. Results do not depend on it.
        inputs: {"name": number} of the controller, which reads them as u in this order; or an array as in sl.simulate.
        others: duration, step, integrator, q, v, tau, controller, forces, closures, limits, events, parameters,
            contacts, sample and start as in sl.simulate, of one run. Steps are of fixed length.

    Raises:
        InputError: a name is not known, draws are impossible (a negative mass), or an argument does not fit.

    Example:
        >>> study = sl.Study(
        ...     sl.zoo.pendulum(),
        ...     vary={"q.hinge1": sl.studies.Uniform(0.1, 1.0)},
        ...     runs=100,
        ...     keep={"speed": sl.studies.Largest("abs(v.hinge1)")},
        ...     duration=0.5,
        ... )
        >>> study.run().results()["speed"].shape
        (100,)
    """

    def __init__(
        self,
        model: Model | Dynamics,
        vary: Mapping[str, Any] | None = None,
        *,
        runs: int | None = None,
        seed: int = 0,
        design: str = "random",
        table: Mapping[str, ArrayLike] | str | os.PathLike[str] | None = None,
        assign: Callable[[dict[str, np.ndarray]], Mapping[str, Any]] | None = None,
        keep: Mapping[str, Any] | Sequence[Any] | None = None,
        trajectories: bool = False,
        store: str | os.PathLike[str] | None = None,
        chunk: int | None = None,
        inputs: Mapping[str, float] | ArrayLike | None = None,
        **others: Any,
    ):
        self.path = store_path(store)
        given = {"vary": vary, "runs": runs, "seed": seed, "design": design, "table": table, "assign": assign}
        self._prepared: Prepared = prepared(model, given, keep, trajectories, inputs, others)
        self._chunk = self._prepared.chunk(chunk)
        self._opened: Any = None

    # ---- what the study is

    @property
    def model(self) -> Model:
        """The mechanism."""
        return self._prepared.setup.model

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what varies."""
        return self._prepared.setup.variables.names

    def __len__(self) -> int:
        """Number of runs."""
        return self._prepared.design.runs

    def draws(self, first: int = 0, end: int | None = None) -> dict[str, np.ndarray]:
        """The numbers of runs first .. end − 1 by name; of all runs by default.

        Raises:
            InputError: there are no such runs.
        """
        last = len(self) if end is None else end
        whole = all(isinstance(x, int | np.integer) and not isinstance(x, bool) for x in (first, last))
        if not (whole and 0 <= first <= last <= len(self)):
            raise InputError(f"study: draws({first!r:.40}, {end!r:.40}): there are runs 0 to {len(self) - 1}")
        rows = self._rows(int(first), int(last))
        return dict(zip(self.names, rows.T, strict=True))

    def _rows(self, first: int, end: int) -> np.ndarray:
        return self._prepared.setup.variables.values(self._prepared.design.rows(first, end))

    # ---- run

    def run(self, client: Any = None, *, threads: int = 0, progress: bool | None = None) -> Study:
        """Compute all runs that are not stored yet, and store each chunk as it finishes; return the study.

        client: a dask.distributed.Client, whose workers compute; the numbers are those of threads, to the bit, on
        machines of one kind. threads: of this process, 0 for all cores. progress: whether a bar is drawn; None draws
        one on a terminal and in notebooks.

        Raises:
            FileError: the store is in use by another process, or the disk is full.
            InputError: the store is of another study.
            StudyError: the cluster was lost. What was finished is stored; run() goes on.
        """
        threads = _threads(threads)
        if not (progress is None or isinstance(progress, bool | np.bool_)):
            raise InputError(f"study: progress is {progress!r:.60}; expected True, False or None")
        if client is not None:
            execution.refuse_no_client(client)
        self._prepared.refuse_changed()
        if store.is_begun(self.path) and self._finished().all():
            return self  # without the lock, which no folder has that is read-only
        with store.locked(self.path):
            opened = execution.uninterrupted(self._opened_store)
            left = np.flatnonzero(~self._finished()).tolist()
            bar = Bar(len(self), len(self) - sum(b - a for a, b in map(opened.span, left)), progress)
            if client is not None:
                bar.say(f"Dask's dashboard: {execution.dashboard(client)}")
                execution.warn_of_no_workers(client)

            def draws(k: int) -> np.ndarray:
                return self._rows(*opened.span(k))

            setup = self._prepared.setup
            if client is None:
                chunks = execution.on_threads(setup, left, draws, threads)
            else:
                chunks = execution.on_dask(setup, left, draws, client)

            def write(k: int, arrays: dict[str, np.ndarray]) -> None:
                columns = dict(zip(self.names, draws(k).T, strict=True))
                opened.write(k, {**columns, **arrays})
                bar.draw(len(arrays["outcome"]), int(np.isin(arrays["outcome"], FAILED_CODES).sum()))

            try:
                execution.stored(chunks, write)
            except KeyboardInterrupt as error:
                error.add_note(f"{self.status()}; run() continues from there")
                raise
            except execution.ClusterLost as error:
                words = f"study: the cluster was lost ({error}). {self.status()}; run() continues from there"
                raise execution.StudyError(words) from error
            finally:
                chunks.close()
                bar.erase()
        names = [item.name for item in spin_items(setup.model, ())]
        warn_of_spins(setup.model, {name: rows(opened, name, finished_runs(opened)) for name in names})
        return self

    def _store(self) -> store.Store:
        """The store, to be read: where none is on the disk yet, one in memory without runs, since run() makes it."""
        if self.path is not None and not self.path.exists():
            return self._opened_at(None)
        return self._opened_store()

    def _opened_store(self) -> store.Store:
        """The store, which is made where there is none; on the disk under its lock."""
        if self._opened is None or self._opened.removed:
            self._opened = self._opened_at(self.path)
        return self._opened

    def _opened_at(self, path: Path | None) -> store.Store:
        p = self._prepared
        return store.opened(path, p.definition, p.results_variables(), p.coordinates(), self._chunk, len(self))

    def _finished(self) -> np.ndarray:
        """Which chunks are stored."""
        found: np.ndarray = execution.uninterrupted(lambda: self._store().finished())
        return found

    def status(self) -> str:
        """How much of the study is stored, as a sentence."""
        if self.path is not None and not self.path.exists():
            return f"0 of {len(self)} runs are finished ({self.path})"
        opened = self._store()
        done = sum(b - a for a, b in (opened.span(k) for k in np.flatnonzero(opened.finished()).tolist()))
        return f"{done} of {len(self)} runs are finished ({opened.path or 'in memory'})"

    # ---- results

    def results(self) -> xarray.Dataset:
        """The results as an xarray.Dataset over `run`: what varies, what is kept, outcomes; units are attributes.

        Runs that are not finished yet are left out; the coordinate `run` has the numbers of the others.
        """
        return dataset(self._store())

    def failures(self) -> dict[int, str]:
        """Runs that failed, {number: reason}: those that could not start, met a singularity, or were lost.

        A run that ends at an event or a limit has not failed.
        """
        return failure_table(self._store())

    def summary(self) -> Summary:
        """Counts of outcomes, and mean, deviation and quantiles of every number that is kept; print it."""
        return summary_of(self.results(), self._prepared.seed_text)

    def sensitivity(self, quantity: str) -> Sensitivity:
        """How strongly each variable acts on a number that is kept: rank correlations, and Sobol' indices.

        Sobol' indices need design="saltelli".
        """
        from spanloop.studies.analysis.sensitivity import sensitivity_of

        return sensitivity_of(self.results(), self.names, quantity, self._prepared.design)

    def rerun(self, index: int, **changed: Any) -> Trajectory:
        """Simulate one run again, alone, by sl.simulate, with all its samples. changed: other arguments, as sample."""
        if isinstance(index, bool) or not isinstance(index, int | np.integer) or not 0 <= index < len(self):
            raise InputError(f"study: rerun({index!r}): there are runs 0 to {len(self) - 1}")
        self._prepared.refuse_changed()
        return self._prepared.simulated(self._rows(int(index), int(index) + 1), changed)

    def audit(self, runs: int = 3) -> StudyAudit:
        """Simulate the runs with the most extreme numbers again, alone, and audit each: steps, energy, closure.

        A study itself does not judge the errors of steps. runs: how many.
        """
        from spanloop.studies.analysis.audit import audit_of

        items = self._prepared.setup.items
        return audit_of(self.results(), [item.name for item in items], self.rerun, runs)

    # ---- optimise

    def best(self, objective: str, *, largest: bool = False, **options: Any) -> Best:
        """Search the numbers that make one that is kept smallest, or largest, by differential evolution.

        Every variable needs a range: Uniform, Triangular, or Normal with low and high; of Choice and Levels only their
        numbers are tried. Each generation is a batch of runs; one that fails counts as worst. options: population (runs
        of a generation, 15 for each variable), generations (100), seed, tolerance (of the spread of a generation, 1e-6)
        and polish (False).
        """
        from spanloop.studies.analysis.optimization import best_of, refuse_unknown_options

        refuse_unknown_options(options)
        return best_of(self._prepared, objective, largest, **options)

    # ---- figures

    def plot(self, what: str, *names: str, ax: Any = None) -> Any:
        """Draw "histogram", "fan", "tornado" or "map" of what is kept, with matplotlib; return the axes.

        plot("histogram", "speed"), plot("fan", "height"), plot("tornado", "speed"), plot("map", "x", "y").
        """
        from spanloop.view.plots.study_figures import plot

        return plot(self, what, *names, ax=ax)

    def page(self, path: str | os.PathLike[str]) -> None:
        """Write one HTML file with the summary, the failures and all figures."""
        from spanloop.view.page.study_page import write

        write(self, path)

    def __repr__(self) -> str:
        return f"Study({self.model.name!r}, {len(self)} runs, varies {', '.join(self.names) or 'nothing'})"


def _threads(given: Any) -> int:
    """How many threads compute: all cores where 0 is given."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 0:
        raise InputError(f"study: threads is {given!r:.60}; expected a whole number, 0 for all cores")
    return int(given) or os.cpu_count() or 1
