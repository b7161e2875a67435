"""Chains of one state over threads: the parts of a mechanism, the phases of a tape, the threads that help, the numbers.

A divided kernel fuses multiplications and additions within its parts only, so that it may differ from the undivided
one in rounding: 1e-12 of the largest acceleration is a hundred times what was seen. Whoever computes a part, bits
are the same. Kernels are divided here however small their parts are.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from closed_answers import AGREE, answer_of, case_of, difference
from random_chains import random_chains
from tape import interpreted, values_of

import spanloop as sl
from spanloop import zoo
from spanloop.compiler.lower.phases import Division, Part, in_phases, shares
from spanloop.compiler.render.thread_team import ALIGNED, ASLEEP, BOX, LEFT
from spanloop.compiler.runtime import machine, threaded
from spanloop.compiler.runtime.threaded import ThreadedKernel
from spanloop.errors import InputError, SpanloopWarning, StateError, UnsupportedError
from spanloop.kernels import KernelSpec, machine_kernel
from spanloop.kernels.lowering import chain_parts
from spanloop.topology import mechanism
from spanloop.topology.partition import parts_of

ROUNDING = 1e-12
METHOD = "simple_closed_chain"
EIGHT = pytest.param("eight", METHOD, marks=[pytest.mark.slow])


@functools.cache
def case(name: str):
    """A mechanism with a state."""
    if name.startswith("support"):
        return random_chains(int(name[-1]) + 1, sort=int(name[-1]), moving_support=True)
    if name == "eight":
        rng = np.random.default_rng(8)
        model, q = zoo.arms_with_object(8), zoo.arms_with_object_start(8)
        v = sl.Dynamics(model).complete_velocity(q, rng.normal(size=6))
        return type(case_of("arms 2"))(model, q, v, rng.normal(size=model.nv))
    return case_of(name)


def spec_of(model, method=METHOD) -> KernelSpec:
    return KernelSpec.of(model, "forward_dynamics", method=method, lowering="unrolled")


@functools.cache
def divided(name: str, method: str = METHOD, threads: int = 2) -> ThreadedKernel:
    """A kernel in as many phases as there can be, however little they spare."""
    spec = spec_of(case(name).model, method)
    return machine_kernel(spec, division=Division.among(threads, chain_parts(spec), min_phase=1, min_total=0))


@functools.cache
def plain(name: str, method: str = METHOD):
    return sl.compile(case(name).model, "forward_dynamics", method=method)


def state(name: str):
    c = case(name)
    return c.q, c.v, c.tau


# ---- the parts of a mechanism


def names(model) -> list[set[str]]:
    m = mechanism(model)
    return [{m.links[i].name for i in part} for part in parts_of(m)]


@pytest.mark.parametrize("arms", [2, 3, 8])
def test_arms_on_an_object_are_parts(arms):
    model = zoo.arms_with_object(arms)
    joints = [j.name for j in model.joints]
    assert names(model) == [{j for j in joints if j.startswith(f"arm{k}_")} for k in range(1, arms + 1)]


def test_legs_limbs_and_platforms():
    assert [len(p) for p in names(zoo.hexapod())] == [3] * 6
    assert [len(p) for p in names(zoo.quadruped())] == [3] * 4
    assert len(names(zoo.stewart())) == 6


def test_machines_side_by_side_need_no_hub():
    b = sl.Builder("two pendulums")
    for k in "ab":
        b.body(f"upper_{k}", 1.0, (0.0, 0.0, -0.5), (0.1, 0.1, 0.1))
        b.body(f"lower_{k}", 1.0, (0.0, 0.0, -0.5), (0.1, 0.1, 0.1))
        b.revolute(f"top_{k}", "world", f"upper_{k}", "y")
        b.revolute(f"knee_{k}", f"upper_{k}", f"lower_{k}", "y", (0.0, 0.0, -1.0))
    assert names(b.build()) == [{"top_a", "knee_a"}, {"top_b", "knee_b"}]


@pytest.mark.parametrize("sort", [0, 1])
def test_a_driven_support_belongs_to_no_part(sort):
    model = case(f"support {sort}").model
    driven = {j.name for j in model.joints if j.driven}
    found = names(model)
    assert driven
    assert len(found) >= 2
    assert not driven & set().union(*found)


def test_one_chain_has_no_parts():
    assert names(zoo.puma()) == []
    with pytest.raises(
        UnsupportedError,
        match=r"chain_threads computes chains in parallel .*; model 'puma' is one chain\. Leave it out",
    ):
        sl.compile(zoo.puma(), "forward_dynamics", chain_threads=2)


# ---- the phases of a tape


TAPES = [
    ("arms 3 pin", METHOD),
    ("arms 3 pin", "elimination"),
    ("arms 2 ball", "arms_on_object_2"),
    ("hexapod", METHOD),
]
TAPES += [("arms 2 ball", "closed_topology"), ("support 0", METHOD), ("support 1", METHOD), ("arms 2 ball", "dense")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method"), TAPES)
@pytest.mark.parametrize(("min_phase", "threads"), [(1, 2), (300, 9)])
def test_phases_hold_every_operation_once_after_what_it_needs_elsewhere(name, method, min_phase, threads):
    spec = spec_of(case(name).model, method)
    plan = spec.plan
    found = in_phases(plan, shares(chain_parts(spec), threads), min_phase, 0)
    place = {
        n.index: (p, home) for p, x in enumerate(found.phases) for home, nodes in enumerate(x.homes) for n in nodes
    }
    work = [n for x in found.phases for nodes in x.homes for n in nodes]
    assert len(work) == len(place)
    assert set(place) == {n.index for n in plan.nodes if n.a is not None}
    for n in work:
        for x in (n.a, n.b, n.c):
            if x is not None and x.index in place and place[x.index] != place[n.index]:
                assert place[x.index][0] < place[n.index][0]
    assert all(x.spared >= min_phase for x in found.phases[1::2])


def test_the_tape_in_phases_says_what_the_tape_says():
    spec = spec_of(case("arms 3 pin").model)
    plan = spec.plan
    inputs = state("arms 3 pin")
    order = [n for n in plan.nodes if n.a is None]
    order += [
        n for x in in_phases(plan, [[x] for x in chain_parts(spec)], 1, 0).phases for nodes in x.homes for n in nodes
    ]
    values = values_of(order, np.concatenate(inputs).tolist())
    np.testing.assert_array_equal([values[x.index] for x in plan.outputs], interpreted(plan, *inputs))


def test_most_of_simple_closed_chain_is_not_joint():
    """Lilly & Orin: all but a sum over chains is done chain by chain."""
    spec = spec_of(case("arms 3 pin").model)
    found = in_phases(spec.plan, [[x] for x in chain_parts(spec)], 1, 0)
    joint, together = (sum(x.total for x in found.phases[k::2]) for k in (0, 1))
    assert joint < 0.15 * together


@pytest.mark.slow
def test_parts_too_small_are_left_to_one_thread():
    kernel = sl.compile(zoo.four_bar(), "forward_dynamics", chain_threads=2)
    assert kernel.phases == 0
    assert "; 2 parts too small to share>" in repr(kernel)
    q = zoo.four_bar_start()
    expected = sl.compile(zoo.four_bar(), "forward_dynamics")(q, np.zeros(3), np.ones(3))
    np.testing.assert_allclose(kernel(q, np.zeros(3), np.ones(3)), expected, rtol=1e-13)


def test_neighbours_share_a_thread():
    parts = [Part(frozenset(range(10 * k, 10 * k + n)), frozenset([k])) for k, n in enumerate((4, 4, 3, 1, 4))]
    found = [[[min(x.outputs) for x in share] for share in shares(parts, threads)] for threads in (2, 4, 9)]
    assert found == [[[0, 1], [2, 3, 4]], [[0], [1], [2, 3], [4]], [[0], [1], [2], [3], [4]]]


# ---- numbers


NUMBERS = [
    ("arms 2", METHOD),
    ("arms 3 pin", METHOD),
    ("hexapod", METHOD),
    ("support 0", METHOD),
    ("support 1", METHOD),
]
NUMBERS += [("arms 2 ball", m) for m in ("elimination", "closed_topology", "arms_on_object_2")] + [EIGHT]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method"), NUMBERS)
def test_threads_give_what_one_thread_gives(name, method):
    kernel = divided(name, method)
    assert kernel.phases > 0
    assert difference(kernel(*state(name)), plain(name, method)(*state(name))) < ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arms 2", "arms 3 pin", "hexapod"])
def test_threads_agree_with_fifty_digits(name):
    assert difference(divided(name)(*state(name)), answer_of(name)) < AGREE


@pytest.mark.slow
def test_bits_do_not_depend_on_who_computes():
    """Called at once, and after a pause in which helpers fall asleep."""
    for kernel in (divided("arms 3 pin"), divided("arms 3 pin", threads=3)):
        first = kernel(*state("arms 3 pin"))
        for k in range(400):
            assert np.array_equal(kernel(*state("arms 3 pin")), first)
            if k % 40 == 0:
                time.sleep(0.002)


@pytest.mark.slow
def test_two_callers_at_once_get_their_own_answers():
    """By the compiled call and by the call that lets other threads of Python run."""
    kernel = divided("arms 3 pin", threads=3)
    q, v, tau = state("arms 3 pin")
    given = [(q, v, tau * k) for k in (1.0, -2.0, 3.0)]
    expected = [kernel(*x) for x in given]
    wrong = []

    def call(k: int) -> None:
        out = np.empty_like(tau)
        for n in range(600):
            kernel.attempt(given[k], out) if n % 2 else kernel(*given[k], out=out)
            if not np.array_equal(out, expected[k]):
                wrong.append((k, n))

    callers = [threading.Thread(target=call, args=(k,)) for k in range(3)]
    for x in callers:
        x.start()
    for x in callers:
        x.join()
    assert not wrong


@pytest.mark.slow
def test_a_batch_is_that_of_the_undivided_kernel():
    q, v, tau = state("arms 2 ball")
    many = (np.stack([q] * 9), v, np.outer(np.arange(9.0), tau))
    np.testing.assert_array_equal(divided("arms 2 ball")(*many), plain("arms 2 ball")(*many))


def test_a_tree_in_single_precision():
    model = zoo.quadruped()
    rng = np.random.default_rng(3)
    q, v, tau = sl.Dynamics(model).integrate(model.neutral(), rng.normal(size=18)), *rng.normal(size=(2, 18))
    spec = spec_of(model, "articulated_body")
    division = Division.among(2, chain_parts(spec), min_phase=1, min_total=0)
    kernel = machine_kernel(spec, dtype="float32", division=division)
    expected = sl.compile(model, "forward_dynamics")(q, v, tau)
    a = kernel(q, v, tau)
    assert a.dtype == np.float32
    assert kernel.phases == 2
    assert np.abs(a - expected).max() < 1e-3 * np.abs(expected).max()


# ---- what is refused


def spoiled(name: str, how: str):
    q, v, tau = (x.copy() for x in state(name))
    if how == "nan":
        v[-1] = np.nan
    elif how == "infinite":
        tau[3] = -np.inf
    elif how == "open":
        q[-2] += 0.1
    elif how == "quaternion":
        q[:4] *= 1.001
    return q, v, tau


@pytest.mark.slow
@pytest.mark.parametrize("how", ["nan", "infinite", "open", "quaternion"])
def test_states_are_refused_with_the_same_sentence(how):
    sentences = []
    for kernel in (plain("arms 2 ball"), divided("arms 2 ball")):
        with pytest.raises(StateError) as raised:
            kernel(*spoiled("arms 2 ball", how))
        sentences.append(str(raised.value))
        assert not kernel.attempt(spoiled("arms 2 ball", how), np.empty(kernel.shape))
        with pytest.warns(SpanloopWarning, match="1 of .* states has no answer"):
            rows = kernel(*(np.stack(x) for x in zip(state("arms 2 ball"), spoiled("arms 2 ball", how), strict=True)))
        assert np.isfinite(rows[0]).all()
        assert np.isnan(rows[1]).all()
    assert sentences[0] == sentences[1]


def test_a_far_angle_is_computed_all_the_same():
    q, v, tau = (x.copy() for x in state("arms 2 ball"))
    q[-1] += 2.0 * np.pi * 2.0**50
    a, b = (kernel(q, v, tau) for kernel in (plain("arms 2 ball"), divided("arms 2 ball")))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("given", [lambda x: x.tolist(), lambda x: np.stack([x, x], -1)[:, 0]], ids=["list", "strided"])
def test_whatever_can_be_converted_is_taken(given):
    kernel, inputs = divided("arms 2 ball"), state("arms 2 ball")
    out = np.empty(kernel.shape)
    assert kernel(*map(given, inputs), out=out) is out
    np.testing.assert_array_equal(out, kernel(*inputs))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"chain_threads": "two"}, "chain_threads is 'two'; expected a whole number, 0 for all cores"),
        ({"chain_threads": -1}, "chain_threads is -1; expected a whole number, 0 for all cores"),
        ({"chain_threads": True}, "chain_threads is True; expected a whole number, 0 for all cores"),
        ({"chain_threads": 2, "target": "python"}, "chain_threads is for target 'cpu'; target is 'python'"),
        (
            {"chain_threads": 2, "lowering": "looped"},
            "chain_threads needs the unrolled form; leave out lowering='looped'",
        ),
        (
            {"chain_threads": 2, "function": "closure_jacobian"},
            "closure_jacobian: chain_threads is for functions that return one number per degree of freedom",
        ),
    ],
)
def test_wrong_options_get_a_sentence(options, sentence):
    function = options.pop("function", "forward_dynamics") if "function" in options else "forward_dynamics"
    with pytest.raises(InputError) as raised:
        sl.compile(zoo.four_bar(), function, **options)
    assert str(raised.value) == sentence


# ---- options of sl.compile


@pytest.mark.slow
def test_a_kernel_is_found_again_on_disk_under_its_number_of_threads():
    made = [divided.__wrapped__("arms 2", METHOD, threads) for threads in (2, 2, 5)]
    assert [k.from_cache for k in made[1:]] == [True, True], "no more threads than parts"
    assert "; 2 parts on 2 threads>" in repr(made[2])
    plain("arms 2")
    assert sl.compile(case("arms 2").model, "forward_dynamics", method=METHOD).from_cache
    assert not sl.compile(case("arms 2").model, "forward_dynamics", method=METHOD, chain_threads=2).from_cache


@pytest.mark.slow
def test_dynamics_takes_the_option_and_keeps_it_when_it_is_pickled():
    c = case("arms 3 pin")
    robot = pickle.loads(pickle.dumps(sl.Dynamics(c.model, method=METHOD, chain_threads=2)))
    assert isinstance(robot.kernel("forward_dynamics"), ThreadedKernel)
    assert not isinstance(robot.kernel("closure_error"), ThreadedKernel)
    for _ in range(3):
        assert difference(robot.forward_dynamics(c.q, c.v, c.tau), answer_of("arms 3 pin")) < AGREE


# ---- the threads


HELP = f"""
define void @help(ptr %job, i64 %number) {{
%at = getelementptr i64, ptr %job, i64 {LEFT + 1}
%before = atomicrmw add ptr %at, i64 %number seq_cst
ret void
}}
"""


def until(condition) -> None:
    end = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < end, "nothing happened for a minute"
        time.sleep(0.001)


def test_a_helper_that_sleeps_is_woken_and_one_that_is_late_is_not_waited_for():
    divided("arms 2 ball")(*state("arms 2 ball"))  # there is one
    own, boxes = threaded._team()
    code = machine.Code(machine.object_code(HELP))
    post = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(own.address("post"))
    finish = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(own.address("finish"))
    memory = np.zeros(64, np.int64)
    first = -memory.ctypes.data % ALIGNED // 8
    job = memory[first : first + 16]
    for sleeping in (True, False, True):
        if sleeping:
            until(lambda: boxes[0] == ASLEEP)
        job[:] = 0
        job[0] = code.address("help")
        assert post(job.ctypes.data, 1) == 1
        until(lambda: job[LEFT + 1] == 1)
        finish(job.ctypes.data, 1)
        assert job[LEFT] == 1
    job[:] = 0
    job[0] = code.address("help")
    finish(job.ctypes.data, post(job.ctypes.data, 1))  # at once: taken back or done, but not both
    assert tuple(job[LEFT : LEFT + 2]) in ((0, 0), (1, 1))


def test_helpers_sleep_when_there_is_nothing_to_do():
    divided("arms 2 ball")(*state("arms 2 ball"))
    boxes = threaded._team()[1]
    until(lambda: all(boxes[BOX * k] == ASLEEP for k in range(threaded._started)))
    assert threaded._started >= 1


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(sys, "setdlopenflags"), reason="processes are forked on POSIX only")
def test_a_forked_process_computes_alone_and_ends():
    """A kernel that it inherited, and one that it makes; neither process is held up by helpers when it ends."""
    divided("arms 2 ball")
    code = """
        import os, sys, warnings
        import numpy as np
        from spanloop.compiler.runtime import threaded

        sys.path.extend(sys.argv[1].split(os.pathsep))
        from test_chain_threads import METHOD, divided, state

        warnings.simplefilter("ignore", DeprecationWarning)
        kernel, inputs = divided("arms 2 ball"), state("arms 2 ball")
        a = kernel(*inputs)
        child = os.fork()
        if child == 0:
            same = np.array_equal(kernel(*inputs), a) and threaded._started == 0
            again = divided.__wrapped__("arms 2 ball", METHOD, 2)
            same = same and threaded._started == 1 and np.array_equal(again(*inputs), a)
            sys.exit(0 if same else 7)
        assert np.array_equal(kernel(*inputs), a)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    run = [sys.executable, "-c", textwrap.dedent(code), os.pathsep.join(sys.path)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
