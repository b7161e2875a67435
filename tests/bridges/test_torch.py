"""Functions on PyTorch tensors: values of the NumPy call, derivatives by torch's own checks."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError, StateError, StateWarning, UnsupportedError

torch = pytest.importorskip("torch")
import spanloop.torch as bridge  # noqa: E402
from spanloop.bridges import torch_kernels  # noqa: E402

STEP = 1e-6  # of central differences: their error is some 1e-9 of values, TOLERANCE is thirty times that
TOLERANCE = 3e-8


def states(model: sl.Model, count: int, seed: int = 1) -> list:
    """Random q, v, tau of a model as tensors (count, n)."""
    pairs = [model.random_state(seed=seed + k) for k in range(count)]
    tau = np.random.default_rng(seed).normal(size=(count, model.nv))
    return [torch.tensor(np.array(x)) for x in (*zip(*pairs, strict=True), tau)]


def required(tensors) -> list:
    return [x.clone().requires_grad_() for x in tensors]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_values_are_those_of_the_numpy_call(dtype):
    model = sl.zoo.puma()
    given = [x.to(dtype) for x in states(model, 5)]
    kernel = sl.compile(model, "forward_dynamics", dtype=str(dtype).removeprefix("torch."))
    found = bridge.forward_dynamics(model)(*given)
    assert found.dtype == dtype
    assert np.array_equal(found.numpy(), kernel(*(x.numpy() for x in given)))
    assert np.array_equal(
        bridge.forward_dynamics(model)(*(x[0] for x in given)), kernel(*(x[0].numpy() for x in given))
    )


def test_the_kernel_reads_and_writes_the_memory_of_tensors(monkeypatch):
    model = sl.zoo.puma()
    f, given = bridge.forward_dynamics(model), states(model, 5)
    kernel = f.kernels._kernel(given[0], f.name, f.kernels.options)
    seen = []

    class Watched:
        inputs, name = kernel.inputs, kernel.name

        def __call__(self, *arrays, out):
            seen.extend(x.ctypes.data for x in (*arrays, out))
            return kernel(*arrays, out=out)

    monkeypatch.setattr(f.kernels, "_kernel", lambda *_: Watched())
    found = f(*given)
    assert seen == [x.data_ptr() for x in (*given, found)]


@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics"])
def test_gradcheck_of_an_arm_of_seven_joints(name):
    model = sl.zoo.chain(7)
    f = bridge.function(model, name)
    assert torch.autograd.gradcheck(f, required(states(model, 2)), check_forward_ad=True)


@pytest.mark.parametrize("name", ["mass_matrix", "gravity_torques"])
def test_gradcheck_of_functions_of_q(name):
    model = sl.zoo.puma()
    assert torch.autograd.gradcheck(bridge.function(model, name), required(states(model, 2)[:1]))


def closed(model: sl.Model, start) -> tuple:
    robot = sl.Dynamics(model)
    rng = np.random.default_rng(3)
    v = robot.project(start, rng.normal(size=model.nv))[1]
    return robot, [torch.tensor(np.asarray(x)) for x in (start, v, rng.normal(size=model.nv))]


LOOPS = [
    pytest.param(lambda: (sl.zoo.four_bar(), sl.zoo.four_bar_start()), id="four-bar"),
    pytest.param(lambda: (sl.zoo.stewart(), sl.zoo.stewart_start()), id="stewart", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("make", LOOPS)
def test_gradcheck_of_closed_loops_by_torques(make):
    _, (q, v, tau) = closed(*make())
    f = bridge.forward_dynamics(make()[0])
    assert torch.autograd.gradcheck(lambda t: f(q, v, t), required([tau]))


@pytest.mark.parametrize("make", LOOPS)
def test_gradients_of_closed_loops_agree_with_robot_derivatives_along_closed_motions(make):
    model, start = make()
    robot, (q, v, tau) = closed(model, start)
    f, weights = bridge.forward_dynamics(model), torch.linspace(1.0, 2.0, model.nv, dtype=torch.float64)
    along = robot.derivatives(q.numpy(), v.numpy(), tau.numpy())
    given = required([q, v])
    (f(*given, tau) @ weights).backward()
    by_q = given[0].grad
    n = f.kernels._rate_matrix(q) if f.kernels.moves_freely else torch.eye(model.nv, dtype=torch.float64)
    found = (by_q @ n).numpy() @ along.dq + given[1].grad.numpy() @ along.dv
    expected = weights.numpy() @ along.da_dq  # by kernels of another kind, themselves compared with differences
    assert np.allclose(found, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())


def free_body() -> sl.Model:
    return sl.Builder("ball").body("ball", 2.0, inertia=(0.1, 0.2, 0.3)).free("free", "world", "ball").build()


def test_gradients_by_quaternions_agree_with_differences_along_tangents():
    model = free_body()
    f, (q, v, _) = bridge.energy(model), [x[0] for x in states(model, 1)]
    pose, robot = bridge.pose(model, "ball"), sl.Dynamics(model)
    for g, others in ((f, (v,)), (pose, ())):
        weights = torch.randn(g(q, *others).shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        x = q.clone().requires_grad_()
        (g(x, *others) * weights).sum().backward()
        for k in range(model.nv):
            unit = np.eye(model.nv)[k]
            ends = [torch.tensor(robot.integrate(q.numpy(), s * STEP * unit)) for s in (1, -1)]
            slope = sum(s * (g(e, *others) * weights).sum() for s, e in zip((1, -1), ends, strict=True)) / (2 * STEP)
            tangent = (ends[0] - ends[1]) / (2 * STEP)
            assert abs(float(x.grad @ tangent - slope)) < TOLERANCE * (1.0 + abs(float(slope)))


def test_second_derivatives_are_refused():
    model = sl.zoo.puma()
    with pytest.raises(UnsupportedError, match="second derivatives are not supported"):
        torch.autograd.gradgradcheck(bridge.forward_dynamics(model), required(states(model, 1)))


def test_the_advice_of_the_refusal_makes_a_derivative_a_constant():
    f, q = bridge.gravity_torques(sl.zoo.puma()), states(sl.zoo.puma(), 1)[0][0]
    inner = torch.func.grad(lambda q: f(q).sum())
    with pytest.raises(UnsupportedError, match=r"for a derivative that a loss takes as a constant, detach its inputs$"):
        torch.func.jvp(inner, (q,), (q,))
    weights = inner(q)
    expected = torch.func.grad(lambda q: f(q) @ weights)(q)
    assert torch.equal(torch.func.grad(lambda q: f(q) @ inner(q.detach()))(q), expected)
    assert torch.allclose(torch.func.jvp(lambda q: f(q) @ inner(q.detach()), (q,), (q,))[1], expected @ q)


def test_vmap_and_jacobians_forward_and_back_agree():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 3)
    assert torch.equal(torch.func.vmap(f)(q, v, tau), f(q, v, tau))
    assert torch.equal(torch.func.vmap(f, in_dims=(1, None, 0))(q.T, v[0], tau), f(q, v[0], tau))
    expected = sl.Dynamics(model).derivatives(q.numpy(), v.numpy(), tau.numpy()).da_dq
    for jacobian in (torch.func.jacrev, torch.func.jacfwd):
        found = torch.func.vmap(jacobian(f))(q, v, tau)
        assert np.allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def test_gradients_of_what_states_share_are_sums():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 3)
    one, many = required([tau[0]])[0], required([tau[:1].expand(3, -1)])[0]
    f(q, v, one).sum().backward()
    f(q, v, many).sum().backward()
    assert torch.allclose(one.grad, many.grad.sum(0), rtol=1e-13)


def test_torch_compile_keeps_the_function_in_one_graph():
    model = sl.zoo.puma()
    f, given = bridge.forward_dynamics(model), states(model, 3)
    loss = lambda q, v, tau: f(q, v, tau).sin().sum()  # noqa: E731
    plain, compiled = required(given), required(given)
    loss(*plain).backward()
    torch.compile(loss, backend="aot_eager", fullgraph=True)(*compiled).backward()
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(plain, compiled, strict=True))


def test_live_parameters_are_a_tensor_or_named():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model, parameters="live"), states(model, 2)
    whole = torch.tensor(model.parameters().values, requires_grad=True)
    f(q, v, tau, whole).sum().backward()
    mass = torch.tensor(float(whole[model.parameters().index("link3.mass")]), dtype=torch.float64, requires_grad=True)
    f(q, v, tau, parameters={"link3.mass": mass}).sum().backward()
    assert torch.allclose(mass.grad, whole.grad[model.parameters().index("link3.mass")], rtol=1e-12)


def test_states_without_an_answer_are_refused_as_by_numpy():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 3)
    q[1, 0] = torch.nan
    with pytest.raises(StateError, match="finite"):
        f(q[1], v[1], tau[1])
    with pytest.warns(StateWarning):
        assert torch.isnan(f(q, v, tau)).any(-1).tolist() == [False, True, False]


@pytest.mark.filterwarnings("error")
def test_a_loss_that_leaves_refused_rows_out_has_gradients_of_zero_there():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 3)
    q[1, 0] = torch.nan
    q.requires_grad_()
    answer, has_answer = f.with_status(q, v, tau)
    assert has_answer.tolist() == [True, False, True]
    torch.where(has_answer[:, None], answer, 0.0).sum().backward()
    assert torch.isfinite(q.grad).all()
    assert (q.grad[1] == 0).all()
    assert not f.with_status(q[1], v[1], tau[1])[1]


@pytest.mark.parametrize("name", ["forward_dynamics", "mass_matrix"])
def test_gradients_of_a_batch_without_states_are_empty(name):
    f = bridge.function(sl.zoo.pendulum(), name)
    given = [torch.zeros(0, 1, dtype=torch.float64, requires_grad=True) for _ in f.inputs]
    for answer in (f(*given), f.with_status(*given)[0]):
        assert all(g.shape == (0, 1) for g in torch.autograd.grad(answer.sum(), given))


def test_a_switchable_loop_is_closed_by_its_active_rows_which_have_no_derivative():
    model = sl.zoo.puma().with_frame("anchor", "world", position=(0.4, 0.0, 0.5))
    model = model.with_loop("tool", "anchor", "spherical", name="grip", switchable=True)
    robot, f = sl.Dynamics(model), bridge.forward_dynamics(model)
    q, z = robot.assemble([0.1, -0.9, 0.4, 0.2, 0.3, 0.1]), torch.zeros(6, dtype=torch.float64)
    for names in (["grip"], []):
        found = f(torch.tensor(q), z, z, torch.tensor(robot.active_rows(names)))
        assert np.array_equal(found.numpy(), robot.forward_dynamics(q, z, z, active_loops=names))
    active = torch.tensor(robot.active_rows()).requires_grad_()
    with pytest.raises(
        InputError, match="active opens and closes loops, and nothing has a derivative by it; different"
    ):
        f(torch.tensor(q), z, z, active).sum().backward()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_what_does_not_fit_is_refused_with_a_sentence():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 1)
    for given, sentence in (
        ((q, v), "forward_dynamics takes q, v, tau; 2 were given"),
        ((q, v, [0.0] * 6), "tau is a list; expected a tensor"),
        ((q, v.float(), tau), "expected one dtype and one device"),
        ((q.half(), v, tau), "q holds torch.float16; expected torch.float64 or torch.float32"),
        ((q[:, :3], v, tau), r"q has shape \(1, 3\); expected \(..., 6\)"),
        ((torch.nested.as_nested_tensor([q, q], layout=torch.jagged), v, tau), r"nested .* torch.cat\(q.unbind\(\)\)"),
        ((torch.nested.as_nested_tensor([q, q]), v, tau), "q is a nested tensor; expected a tensor"),
        ((q.to("meta"), v.to("meta"), tau.to("meta")), "tensors on meta are not supported"),
    ):
        with pytest.raises((InputError, UnsupportedError), match=sentence):
            f(*given)
    for options, sentence in (
        ({"dtype": "float32"}, "forward_dynamics: dtype follows from the tensors of a call; leave it out"),
        ({"device": 1}, "forward_dynamics: device follows from the tensors of a call; leave it out"),
        ({"warps": 2}, "forward_dynamics: warps is not for PyTorch: it is chosen by the size of a batch; leave it out"),
        ({"layout": "columns"}, "forward_dynamics: layout is not for PyTorch: tensors have a row for every state"),
        ({"paramters": "live"}, "forward_dynamics: there is no option 'paramters'; did you mean 'parameters'"),
    ):
        with pytest.raises(InputError, match=sentence):
            bridge.forward_dynamics(model, **options)


def test_chains_over_threads_have_the_gradients_of_one_thread():
    b = sl.Builder("two arms")
    for side in ("left", "right"):
        b.body(side, 1.0, (0.3, 0.0, 0.0), (0.01, 0.02, 0.02)).revolute(f"{side} hinge", "world", side, "y")
    model = b.build()
    given = states(model, 2)
    functions = [bridge.forward_dynamics(model, chain_threads=n) for n in (1, 2)]
    one, divided = (torch.func.grad(lambda *x, f=f: f(*x).sum())(*given) for f in functions)
    assert torch.equal(one, divided)


def test_batched_gradients_agree_with_single_ones():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 2)
    checks = {"check_batched_grad": True, "check_forward_ad": True, "check_batched_forward_grad": True}
    assert torch.autograd.gradcheck(f, required([q, v, tau]), **checks)
    for g in (lambda x: f(q[0], v, x), bridge.mass_matrix(model)):  # one row that states share; a matrix
        expected = torch.autograd.functional.jacobian(g, tau[0])
        for strategy in ("reverse-mode", "forward-mode"):
            found = torch.autograd.functional.jacobian(g, tau[0], vectorize=True, strategy=strategy)
            assert torch.allclose(found, expected, rtol=1e-10, atol=1e-10 * float(expected.abs().max()))


def test_tensors_that_are_views_with_a_sign_are_read_with_it():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 2)
    negative = torch.imag(torch.complex(tau, tau).conj())
    assert negative.is_neg()
    assert torch.equal(f(q, v, negative), f(q, v, -tau))
    assert torch.equal(torch_kernels._rows(negative[:1, :1], (1,)), -tau[:1, :1])  # as for a GPU
    with pytest.raises(InputError, match=r"tau has layout torch.sparse_coo; expected torch.strided. Try tau.to_dense"):
        f(q, v, tau.to_sparse())


def test_parameters_of_a_model_are_live_parameters():
    model = sl.zoo.puma()
    f, given = bridge.forward_dynamics(model, parameters="live"), states(model, 2)
    changed = model.parameters().changed({"link3.mass": 7.0})
    assert torch.equal(f(*given, changed), f(*given, {"link3.mass": 7.0}))
    for parameters, sentence in (
        (sl.zoo.four_bar().parameters(), "parameters are those of another model: there is no parameter"),
        ({"link3.mass": "x"}, "parameter 'link3.mass' is a str; expected a number or an array"),
        ({"link3.mass": torch.zeros(2), "link2.mass": torch.zeros(3)}, "batch axes of parameters do not fit together"),
    ):
        with pytest.raises(InputError, match=sentence):
            f(*given, parameters)


def test_live_parameters_are_on_the_device_of_the_other_inputs_whatever_the_default_is():
    model = sl.zoo.puma()
    f, given = bridge.forward_dynamics(model, parameters="live"), states(model, 2)
    kinds = ({}, {"link3.mass": 7.0}, {"link3.mass": [7.0, 8.0]}, {"link3.mass": np.float64(7.0)}, model.parameters())
    expected = [f(*given, parameters) for parameters in kinds]
    with torch.device("meta"):
        found = [f(*given, parameters) for parameters in kinds]
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.filterwarnings("error::torch.jit.TracerWarning", "ignore::DeprecationWarning")
def test_tracing_warns_of_nothing():
    f, given = bridge.forward_dynamics(sl.zoo.puma(), parameters="live"), states(sl.zoo.puma(), 3)
    g = lambda q, v, tau: f(q, v, tau, {"link3.mass": 1.0 + q[:, 0].square()})  # noqa: E731
    traced = torch.jit.trace(g, given)
    assert torch.equal(traced(*given), g(*given))
    assert torch.equal(traced(*(x + 0.1 for x in given)), g(*(x + 0.1 for x in given)))


def test_a_function_that_has_no_name_is_refused_with_a_sentence():
    for function in (None, 3):
        with pytest.raises(InputError, match=f"function is {function}; expected a name, as 'forward_dynamics'"):
            bridge.function(sl.zoo.puma(), function)
