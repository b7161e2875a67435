"""iLQR on top of the public calls: swing-up of a cart-pole and of a five-bar, a closed loop.

sl.sensitivities gives the linear model of every step, x⁺ = A x + B u, from one batch of runs of one step each; a
backward pass makes forces and feedback gains of them; sl.simulate tries several step lengths side by side, with the
feedback in a callback. The state is x = [q − goal; v] of all joints. Of a closed loop A and B are derivatives along
closed motions, and neither the passes nor the gains need to know of it.

The page, with figures: docs/examples/33_ilqr.md
"""

import numpy as np

import spanloop as sl

# ---- iLQR


class Ilqr:
    """Forces of some motors, |u| <= bound, with least ½ xᵀ W x at the end plus the integral of ½ xᵀ Q x + ½ R |u|².

    W, Q (2 nv): weights of the entries of x.
    """

    def __init__(self, robot, start, goal, motors, step, W, Q, R, bound):
        self.robot, self.start, self.goal, self.motors = robot, start, goal, motors
        self.step, self.W, self.Q, self.R, self.bound = step, np.array(W), np.array(Q), R, bound

    def state(self, q, v):
        """x (..., 2 nv)."""
        return np.concatenate([self.robot.difference(self.goal, q), v], axis=-1)

    def cost(self, x, u):
        """Of runs x (..., N + 1, 2 nv), u (..., N, n)."""
        along = (x[..., :-1, :] ** 2 * self.Q).sum(axis=(-2, -1)) + self.R * (u**2).sum(axis=(-2, -1))
        return 0.5 * ((x[..., -1, :] ** 2 * self.W).sum(axis=-1) + self.step * along)

    def torques(self, u):
        """tau (..., nv) of forces u (..., n)."""
        tau = np.zeros((*u.shape[:-1], self.robot.model.nv))
        tau[..., self.motors] = u
        return tau

    def runs(self, shares, u, x, k, K):
        """Runs with u + share · k + K (x_now − x), one for each share, and their forces (shares, N, n)."""
        used = np.zeros((len(shares), *u.shape))

        def law(t, q, v):
            i = min(round(t / self.step), len(u) - 1)
            wanted = u[i] + shares[:, None] * k[i] + (self.state(np.asarray(q), np.asarray(v)) - x[i]) @ K[i].T
            used[:, i] = np.clip(wanted, -self.bound, self.bound)
            return self.torques(used[:, i])

        q = np.tile(self.start, (len(shares), 1))
        controller, options = sl.control.callback(law), {"step": self.step, "integrator": "rk4"}
        return sl.simulate(self.robot, q, duration=self.step * len(u), controller=controller, **options), used

    def gains(self, A, B, x, u, damping):
        """The backward pass: k (N, n) and K (N, n, 2 nv) from the last step to the first."""
        k, K = np.zeros_like(u), np.zeros((*u.shape, x.shape[-1]))
        P, p, h = np.diag(self.W), self.W * x[-1], self.step
        for i in reversed(range(len(u))):
            Qu, Qux = h * self.R * u[i] + B[i].T @ p, B[i].T @ P @ A[i]
            Quu = h * self.R * np.eye(len(self.motors)) + B[i].T @ P @ B[i] + damping * B[i].T @ B[i]
            held = (np.abs(u[i]) >= self.bound) & (u[i] * Qu < 0.0)  # at a bound, and pressed against it
            k[i], K[i] = -np.linalg.solve(Quu, Qu) * ~held, -np.linalg.solve(Quu, Qux) * ~held[:, None]
            p = h * self.Q * x[i] + A[i].T @ p + K[i].T @ (Quu @ k[i] + Qu) + Qux.T @ k[i]
            P = h * np.diag(self.Q) + A[i].T @ P @ A[i] + K[i].T @ Quu @ K[i] + K[i].T @ Qux + Qux.T @ K[i]
        return k, K

    def solve(self, u, rounds=60, tolerance=1e-4):
        """The forces u (N, n), the run with them, and the cost after each round."""
        nv, shares, damping = self.robot.model.nv, 0.5 ** np.arange(8), 1e-6
        found, used = self.runs(np.zeros(1), u, np.zeros((len(u), 2 * nv)), 0.0 * u, np.zeros((*u.shape, 2 * nv)))
        run, x = found[0], self.state(found[0].q, found[0].v)
        costs, options = [self.cost(x, used[0])], {"step": self.step, "integrator": "rk4"}
        while len(costs) <= rounds and damping < 1e6:
            tau, h = self.torques(u)[:, None], self.step
            s = sl.sensitivities(
                self.robot, run.q[:-1], run.v[:-1], duration=h, tau=tau, wrt=("q", "v", "tau"), **options
            )
            A, B = s.by("q", "v"), s.by("tau")[..., self.motors]
            while damping < 1e6:
                found, used = self.runs(shares, u, x[:-1], *self.gains(A, B, x, u, damping))
                all_x = self.state(found.q, found.v)
                best = int(np.argmin(self.cost(all_x, used)))
                if self.cost(all_x, used)[best] < costs[-1]:
                    break
                damping *= 10.0
            else:
                break
            damping = max(damping / 5.0, 1e-9)
            run, x, u = found[best], all_x[best], used[best]
            costs.append(self.cost(x, u))
            if costs[-2] - costs[-1] < tolerance * costs[-1]:
                break
        return u, run, costs


def report(name, solver, u, run, costs):
    """Print what was found, and check it: a run under these forces, without feedback, audited."""
    tau = solver.torques(u)
    again = sl.simulate(solver.robot, solver.start, duration=run.duration, step=run.step, integrator="rk4", tau=tau)
    off = np.abs(solver.state(again.q[-1], again.v[-1])).max()
    assert off < 1e-2
    assert all(x.verdict == "well" for x in again.audit().findings)
    print(f"{name}: {u.size} forces, at most {np.abs(u).max():.0f} N or N m")
    print(f"  the cost falls from {costs[0]:.0f} to {costs[-1]:.2f}")
    print("  it ends within 0.01 of its goal (rad, m, rad/s, m/s); the audit is well")
    return again


# ---- a cart-pole

b = sl.Builder("cart_pole").body("cart", 1.0, inertia=(0.01, 0.01, 0.01))
b.body("pole", 0.3, (0.0, 0.0, -0.5), (0.0063, 0.0063, 0.0))
b.prismatic("rail", "world", "cart", "x").revolute("hinge", "cart", "pole", "y", actuated=False)
cart_pole, upright = sl.Dynamics(b.build()), np.array([0.0, np.pi])
solver = Ilqr(cart_pole, np.zeros(2), upright, [0], 0.02, [1e3, 1e3, 1e2, 1e2], np.zeros(4), 0.02, 12.0)
cart_u, cart_run, cart_costs = solver.solve(0.1 * np.sin(np.arange(80.0))[:, None])
cart_run = report("cart-pole", solver, cart_u, cart_run, cart_costs)

# ---- a five-bar: two motors, one closed loop

model = sl.zoo.five_bar(base=0.4).with_joint("*", damping=0.5)
guess = sl.zoo.five_bar_start(base=0.4, angles=(-1.8, -1.3))
hanging = sl.simulate(model.with_joint("*", damping=3.0), guess, duration=60.0, step=5e-3, sample=1.0).q[-1]
five_bar = sl.Dynamics(model)
goal = five_bar.assemble(-hanging) - 2.0 * np.pi * np.array([1.0, 0.0, 1.0, 0.0])  # the mirror image, clockwise
W, Q = [1e3] * 4 + [30.0] * 4, [0.0] * 4 + [0.02] * 4
solver = Ilqr(five_bar, hanging, goal, [0, 2], 0.01, W, Q, 0.002, 25.0)
u, run, costs = solver.solve(5.0 * np.sin(2.4 * np.pi * np.linspace(0.0, 1.0, 200))[:, None] * np.ones(2))
run = report("five-bar", solver, u, run, costs)
print(f"  the loop stays closed to {run.residual:.0e} rad or of its length")
