"""One file: read by its peer and by spanloop, compared at random states, simulated for half a second.

Run as a program it is a worker: it reads one JSON line a file from its input and writes JSON lines to its output,
{"stage": ..., "known": ...} before each stage and {"result": ...} at the end.
"""

from __future__ import annotations

import inspect
import json
import os
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import spanloop as sl
from spanloop.errors import SpanloopError
from spanloop.model import Model

MEMORY = 8_000_000_000  # bytes of addresses that a worker may have
STATES = 3
BOUND = 1e-8  # of the largest torque, or of the diagonal of the mass matrix
DURATION = 0.5  # seconds
MOST_COMPARED = 1000  # DoF of a model that is compared
LEFT_OUT = ("<composite>", "<flexcomp>", "<flex>", "<deformable>")  # parts that move: with them another mechanism
Result = dict[str, Any]


def examined(path: Path, root: Path, sort: str, tell: Callable[[str, Result], None]) -> Result:
    """All that is found out about one file.

    root: its package's folder; tell: called with the name of each stage and the results before it
    """
    result: Result = {"times": {}}

    def staged(name: str, stage: Callable[[], Any]) -> Any:
        tell(name, result)
        start = time.perf_counter()
        try:
            return stage()
        finally:
            result["times"][name] = round(time.perf_counter() - start, 3)

    peer = staged("peer", lambda: _peer(path, root, sort, result))
    model = staged("load", lambda: _loaded(path, root, result))
    if model is not None and peer is not None:
        staged("compare", lambda: result.update(compared=_compared(peer, model, result["notes"])))
    if model is not None:
        staged("simulate", lambda: result.update(simulated=_simulated(model)))
    return result


def _peer(path: Path, root: Path, sort: str, result: Result) -> Any:
    from peers import PEERS

    try:
        peer = PEERS[sort](path, root)
        result["peer"] = "reads"
        return peer
    except ImportError:
        result["peer"] = "absent"
    except Exception as error:
        result["peer"], result["peer_says"] = "refuses", " ".join(str(error).split())[:400]
    return None


def _loaded(path: Path, root: Path, result: Result) -> Model | None:
    """The model, first as any user loads it, then with the permissions that a refusal offers."""
    known = inspect.signature(sl.load).parameters
    tries: list[dict[str, Any]] = [{}]
    tries += [{"root": root}] if "root" in known else []
    tries += [{"root": root, "repair": True}] if "root" in known and "repair" in known else []
    for options in tries:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                model = sl.load(path, **options)
                model = model if model.nv else _moving(model, path, options)
            except Exception as error:
                result["ours"], result["ours_says"] = "refuses", _said(error, result)
                continue
        result["ours"], result["with"] = "reads", sorted(options)
        result["warned"] = sorted({str(w.message)[:300] for w in told})
        result["notes"] = list(model.notes) + result["warned"]
        result["size"] = [model.nv, len(model.bodies), len(model.loops), len(model.couplings)]
        return model
    return None


def _moving(model: Model, path: Path, options: dict[str, Any]) -> Model:
    """A URDF without moving joints on a free base, where it can have one: an object is of interest where it moves."""
    try:
        return sl.load(path, base="free", **options) if path.suffix == ".urdf" else model
    except SpanloopError:
        return model  # its root link is the world


def _said(error: Exception, result: Result) -> str:
    """The error's sentence; one that spanloop does not raise on purpose is raw, and is kept with its last calls."""
    if not isinstance(error, SpanloopError):
        result.setdefault("raw", []).append("".join(traceback.format_exception(error))[-1500:])
    return f"{type(error).__name__}: {error}"[:600]


def _compared(peer: Any, model: Model, notes: list[str]) -> Result:
    """Whether the numbers agree; where they do not, whether they do without a feature that a note names."""
    if model.nv == 0:
        return {"verdict": "agrees", "worst": 0.0, "why": "nothing moves"}
    if model.nv > MOST_COMPARED:
        return {"verdict": "not compared", "why": f"{model.nv} DoF"}
    missing = [note for note in notes if any(word in note for word in LEFT_OUT)]
    if missing:
        return {"verdict": "not compared", "why": missing[0]}
    result: Result = {}
    try:
        tree = peer.comparable(model)
        ours = _answers(tree)
        result["worst"] = _worst(peer, tree, ours)
        result["singular"] = sum(bool(np.isnan(a).any()) for *_, a in ours)
        if max(result["worst"].values()) <= BOUND:
            return {"verdict": "agrees", **result}
        result["first"] = result["worst"]
        named = " ".join(notes)
        off = [word for word, switch in peer.switches.items() if word in named and switch()]
        result["worst"] = _worst(peer, tree, ours)
        if off and max(result["worst"].values()) <= BOUND:
            return {"verdict": "agrees without", "why": ", ".join(off), **result}
        changes = peer.changes(tree)
        if changes:
            return {"verdict": "explained", "why": f"the peer {changes}", **result}
        return {"verdict": "differs", "why": f"switched off: {', '.join(off)}" if off else "", **result}
    except Exception as error:
        return {"verdict": "differs", "why": _said(error, result), **result}


def _answers(tree: Model) -> list[tuple[np.ndarray, ...]]:
    """States with our mass matrix, torques at zero acceleration, and accelerations (NaN where singular).

    In plain arithmetic, which kernels are compiled from: hundreds of files need no compiler for three states.
    """
    compute = {name: sl.on_scalars(tree, name) for name in ("mass_matrix", "bias", "forward_dynamics")}
    found = []
    for seed in range(STATES):
        q, v = tree.random_state(seed=seed)
        tau = np.random.default_rng(seed).standard_normal(tree.nv)
        state = q.tolist(), v.tolist(), tau.tolist()
        M, h = np.array(compute["mass_matrix"](*state[:1])), np.array(compute["bias"](*state[:2]))
        try:
            a = np.array(compute["forward_dynamics"](*state))
        except ZeroDivisionError:
            a = np.full(tree.nv, np.nan)
        found.append((q, v, tau, M, h, a))
    return found


def _worst(peer: Any, tree: Model, ours: list[tuple[np.ndarray, ...]]) -> dict[str, float]:
    """The largest errors: of M by its diagonal, of h by its largest number, of M a + h − tau by its terms."""
    worst = {"mass_matrix": 0.0, "bias": 0.0, "forward_dynamics": 0.0}
    for q, v, tau, M, h, a in ours:
        their_M, their_h = peer.answers(q, v)
        size = np.sqrt(np.abs(np.diagonal(their_M)))
        floor = 1e-12 * max(float(size.max()) ** 2, 1e-30)
        worst["mass_matrix"] = max(worst["mass_matrix"], _largest(np.abs(M - their_M) / (np.outer(size, size) + floor)))
        scale = max(_largest(np.abs(their_h)), _largest(np.abs(their_M)) * max(_largest(v * v), 1.0), 1e-30)
        worst["bias"] = max(worst["bias"], _largest(np.abs(h - their_h) / scale))
        if np.isnan(a).any() and _is_nearly_singular(their_M):
            continue
        terms = np.abs(their_M) @ np.abs(a) + np.abs(their_h) + np.abs(tau)
        rest = their_M @ a + their_h - tau
        worst["forward_dynamics"] = max(worst["forward_dynamics"], _largest(np.abs(rest) / terms.max()))
    return worst


def _is_nearly_singular(M: np.ndarray) -> bool:
    """May accelerations be refused here? A ratio of pivot to diagonal entry above 3e-4 must be answered."""
    size = np.sqrt(np.diagonal(M))
    return bool((size <= 0.0).any() or np.linalg.cond(M / np.outer(size, size)) > 3e3)


def _largest(errors: np.ndarray) -> float:
    """The largest error; one that is no number is infinite."""
    return float(np.where(np.isnan(errors), np.inf, errors).max(initial=0.0))


def _simulated(model: Model) -> Result:
    """How half a second with default settings ended."""
    result: Result = {}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            run = sl.simulate(model, duration=DURATION)
        except Exception as error:
            result["sentence"] = _said(error, result)
            result["outcome"] = "raw exception" if "raw" in result else "refused"
        else:
            result["outcome"], result["sentence"] = str(run.outcome.reason), str(run.outcome.sentence)[:600]
            result["finite"] = bool(np.isfinite(run.q).all())
    result["warned"] = sorted({str(w.message)[:300] for w in told})
    result["named"] = _is_named(model, result["sentence"])
    return result


def _is_named(model: Model, sentence: str) -> bool:
    """Does the sentence name a part of the model?"""
    parts = (*model.joints, *model.bodies, *model.loops, *model.couplings)
    return any(repr(part.name) in sentence or f"{part.name}:" in sentence for part in parts)


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    answer = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print goes elsewhere

    def tell(stage: str, known: Result) -> None:
        print(json.dumps({"stage": stage, "known": known}), file=answer)

    for line in sys.stdin:
        job = json.loads(line)
        result = examined(Path(job["path"]), Path(job["root"]), job["format"], tell)
        print(json.dumps({"result": result}), file=answer)


if __name__ == "__main__":
    main()
