"""Functions in graphs of torch: compile, export and fx agree with the eager call, or refuse, in any process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError, UnsupportedError

torch = pytest.importorskip("torch")
from torch.autograd import forward_ad  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

import spanloop.torch as bridge  # noqa: E402

func = torch.func
MODEL = sl.zoo.puma()
F = bridge.forward_dynamics(MODEL)
STATES = [torch.tensor(np.random.default_rng(k).normal(size=(3, 6))) for k in range(3)]
Q, V, TAU = STATES
ONE = torch.ones(6, dtype=torch.float64)


def g(tau):
    """Of one state and torques."""
    return F(Q[0], V[0], tau)


class Module(torch.nn.Module):
    def forward(self, tau):
        return g(tau)


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()


def dual(h):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(h(forward_ad.make_dual(TAU[0], ONE))).tangent


TRANSFORMS = {
    "jvp": lambda: lambda t: func.jvp(g, (t,), (ONE,))[1],
    "jacfwd": lambda: func.jacfwd(g),
    "jacrev": lambda: func.jacrev(g),
    "grad": lambda: func.grad(lambda t: g(t).square().sum()),
    "vjp": lambda: lambda t: func.vjp(g, t)[1](ONE)[0],
    "vmap": lambda: lambda t: func.vmap(F)(Q, V, t + TAU),
    "vmap of jacrev": lambda: lambda t: func.vmap(func.jacrev(F, argnums=2))(Q, V, t + TAU),
    "vmap of jacfwd by q": lambda: lambda t: func.vmap(func.jacfwd(F))(Q, V, t + TAU),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_inside_of_compile_agree_with_the_eager_call(name, backend):
    transform = TRANSFORMS[name]()
    found = torch.compile(lambda t: transform(t), backend=backend)(TAU[0])
    expected = transform(TAU[0])
    assert expected.abs().max() > 1e-3
    assert torch.allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("make", [lambda: torch.compile(g, backend="eager"), lambda: exported(Module())])
def test_transforms_of_graphs_agree_with_the_eager_call(make):
    h = make()
    expected = func.jacrev(g)(TAU[0])
    assert torch.allclose(h(TAU[0]), g(TAU[0]), rtol=1e-12)
    for found in (func.jacfwd(h)(TAU[0]), func.jacrev(h)(TAU[0]), func.vmap(func.jacrev(h))(TAU)[0]):
        assert torch.allclose(found, expected, rtol=1e-12)
    assert torch.allclose(func.jvp(h, (TAU[0],), (ONE,))[1], expected @ ONE, rtol=1e-12)
    x = TAU[0].clone().requires_grad_()
    batched = torch.autograd.grad(h(x), x, torch.eye(6, dtype=torch.float64), is_grads_batched=True)[0]
    assert torch.allclose(batched, expected, rtol=1e-12)


GRAPHS = [
    pytest.param(lambda h: torch.compile(h, backend="eager"), id="compile"),
    pytest.param(lambda h: exported(type("Module", (torch.nn.Module,), {"forward": lambda _, t: h(t)})()), id="export"),
    pytest.param(torch.compile, id="inductor", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("make", GRAPHS)
def test_duals_through_graphs_are_refused_or_right_and_jvp_is_right(make):
    h = make(lambda t: 2.0 * g(t))
    expected = 2.0 * func.jvp(g, (TAU[0],), (ONE,))[1]
    try:
        found = dual(h)  # torch 2.15 gives up a graph of compile for duals, and runs the function
    except UnsupportedError as refusal:  # machine code of inductor would scale the values and leave the tangents
        right = "make_dual cannot pass through a graph. Try torch.func.jvp" in str(refusal)
    else:
        right = torch.allclose(found, expected, rtol=1e-12)
    assert right
    assert torch.allclose(func.jvp(h, (TAU[0],), (ONE,))[1], expected, rtol=1e-12)


@pytest.mark.slow
def test_forward_derivatives_inside_of_machine_code_of_inductor_agree():
    expected = 2.0 * func.jvp(g, (TAU[0],), (ONE,))[1]
    inside = torch.compile(lambda t: func.jvp(lambda x: 2.0 * g(x), (t,), (ONE,))[1])
    assert torch.allclose(inside(TAU[0]), expected, rtol=1e-12)


@pytest.mark.filterwarnings("error:Dynamo")
@pytest.mark.parametrize(
    "transform",
    [func.vmap, func.jacrev, lambda f: func.grad(lambda t: f(t).sum()), lambda f: lambda t: func.jvp(f, (t,), (t,))[1]],
    ids=["vmap", "jacrev", "grad", "jvp"],
)
def test_dynamo_warns_of_nothing_where_transforms_go_around_a_compiled_function(transform):
    f = bridge.gravity_torques(MODEL)
    found = transform(torch.compile(f, backend="aot_eager"))(Q)
    assert torch.equal(found, transform(f)(Q))


def exported(module):
    return torch.export.export(module, (TAU[0],)).module()


def test_second_derivatives_of_graphs_are_refused():
    h, x = exported(Module()), TAU[0].clone().requires_grad_()
    with pytest.raises(UnsupportedError, match="second derivatives are not supported"):
        torch.autograd.grad(torch.autograd.grad(h(x).sum(), x, create_graph=True)[0].sum(), x)
    pulled = make_fx(lambda t: func.grad(lambda t: g(t).sum())(t))(TAU[0])
    pushed = make_fx(lambda t: func.jvp(g, (t,), (ONE,))[1])(TAU[0])
    for graph in (pulled, pushed):  # a derivative in a graph has no tangents of zero either
        with pytest.raises(UnsupportedError, match="second derivatives are not supported"):
            func.jvp(graph, (x.detach(),), (ONE,))
        with pytest.raises(UnsupportedError, match="second derivatives are not supported"):
            graph(x).sum().backward()


def test_what_traces_calls_sees_the_operators():
    _, push = func.linearize(g, TAU[0])
    for direction in (ONE, TAU[1]):
        assert torch.allclose(push(direction), func.jvp(g, (TAU[0],), (direction,))[1], rtol=1e-12)
    graph = make_fx(lambda t: 2.0 * g(t))(TAU[0])
    assert torch.allclose(graph(TAU[1]), 2.0 * g(TAU[1]), rtol=1e-12)
    assert "spanloop.evaluate" in graph.code
    gradient = make_fx(func.jacrev(g))(TAU[0])
    assert torch.allclose(gradient(TAU[1]), func.jacrev(g)(TAU[1]), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_torchscript_trace_has_the_operator_and_no_constant():
    traced = torch.jit.trace(lambda t: 2.0 * g(t), (TAU[0],))
    assert torch.allclose(traced(TAU[1]), 2.0 * g(TAU[1]), rtol=1e-12)


def test_compile_takes_dynamic_shapes_and_functions_as_arguments():
    compiled = torch.compile(lambda f, q, v, tau: f(q, v, tau).sin(), backend="eager", dynamic=True, fullgraph=True)
    others = [bridge.forward_dynamics(MODEL.with_gravity((0.0, 0.0, -x))) for x in (1.0, 2.0)]
    for f in (F, *others):
        for n in (2, 3):
            given = [x[:n] for x in STATES]
            assert torch.equal(compiled(f, *given), f(*given).sin())


def test_operators_pass_the_checks_of_torch():
    tau = TAU.clone().requires_grad_()
    torch.library.opcheck(torch.ops.spanloop.evaluate.default, ([Q, V, tau], F.kernels.key, False))
    torch.library.opcheck(torch.ops.spanloop.pull_back.default, ([Q, V, TAU], V, F.kernels.key, True, [0, 2]))
    given = ([Q, V, TAU], [V], F.kernels.key, False, [1])
    torch.library.opcheck(torch.ops.spanloop.push_forward.default, given)


def test_keys_follow_from_what_is_computed():
    key = F.kernels.key
    assert bridge.forward_dynamics(sl.zoo.puma()).kernels.key == key
    assert pickle.loads(pickle.dumps(F)).kernels.key == key
    others = [
        bridge.inverse_dynamics(MODEL),
        bridge.forward_dynamics(MODEL.with_parameters({"link3.mass": 7.0})),
        bridge.forward_dynamics(MODEL, parameters="live"),
        bridge.pose(MODEL, "link6"),
        bridge.pose(MODEL, "link5"),
    ]
    assert len({f.kernels.key for f in others} | {key}) == 6


def test_a_graph_whose_function_is_not_made_here_says_what_to_make():
    with pytest.raises(InputError, match=r"not made in this process; make it first: spanloop\.torch\.function"):
        torch.ops.spanloop.evaluate([Q, V, TAU], "forward_dynamics.0", False)


PROCESS = """
import sys, torch, spanloop as sl, spanloop.torch

def model(mass):
    return sl.Builder("p").body("b", mass, (0.7, 0, 0), (0.05,) * 3).revolute("h", "world", "b", "y").build()

what, file = sys.argv[1:]
z = torch.zeros(1, dtype=torch.float64)
if what == "save":
    f = spanloop.torch.forward_dynamics(model(1.0))
    Module = type("Module", (torch.nn.Module,), {"forward": lambda self, tau: f(z, z, tau)})
    torch.export.save(torch.export.export(Module(), (z,)), file)
else:
    spanloop.torch.forward_dynamics(model(100.0))
    loaded = torch.export.load(file).module()
    try:
        print(loaded(z).item())
    except sl.SpanloopError as error:
        print(type(error).__name__, "make it first" in str(error))
    f = spanloop.torch.forward_dynamics(model(1.0))
    print(torch.equal(loaded(z), f(z, z, z)))
"""


@pytest.mark.slow
def test_a_graph_that_was_saved_finds_its_function_in_another_process(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(sl.__file__).parents[1])}
    for what, expected in (("save", ""), ("load", "InputError True\nTrue\n")):
        command = [sys.executable, "-c", PROCESS, what, str(tmp_path / "m.pt2")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.stdout == expected, done.stderr
