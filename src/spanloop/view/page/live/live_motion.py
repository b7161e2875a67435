"""The motion of a live page as one WebAssembly module, and the table by which the page finds its arrays.

Inputs u of a step, one after the other:

| part | numbers | meaning |
|---|---|---|
| torques | nv | at the joints [N m or N] |
| forces | 6 a body | [torque; force] on each body at its origin in world axes [N m; N] |
"""

from __future__ import annotations

import base64
import gzip
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.compiler.lower import Plan
from spanloop.compiler.portable.wasm_program import Program
from spanloop.dynamics import Dynamics
from spanloop.export.portable_motion import PortableMotion
from spanloop.kernels import KernelSpec


@dataclass(frozen=True)
class LiveMotion:
    """A mechanism that runs in a page; q, v: where it begins."""

    motion: PortableMotion
    program: Program

    @staticmethod
    def of(robot: Dynamics, q: Any = None, v: Any = None, *, step: float = 1e-3, limits: str = "stop") -> LiveMotion:
        """The live motion of a mechanism from a state."""
        model = robot.model
        bodies = [b.name for b in model.bodies]
        width = model.nv + 6 * len(bodies)

        def torques(t, q, v, u):
            return list(u[: model.nv])

        def forces(t, q, v, u):
            return {name: list(u[model.nv + 6 * k : model.nv + 6 * k + 6]) for k, name in enumerate(bodies)}

        motion = PortableMotion.of(
            robot, q, v, step=step, limits=limits, controller=torques, inputs=np.zeros(width), forces=forces
        )
        program = Program()
        program.add_schedule(motion.schedule)
        for name in ("poses", "energy", *(("closure_error",) if model.loops or model.couplings else ())):
            plan = KernelSpec.of(model, name, lowering="unrolled").plan
            assert isinstance(plan, Plan)
            program.add_kernel(name, plan)
        return LiveMotion(motion, program)

    def data(self) -> dict[str, Any]:
        """What the page reads: the module, places of its arrays, numbers at the start, parts of the inputs."""
        model, s, memory = self.motion.problem.model, self.motion.schedule, self.program.memory
        return {
            "wasm": base64.b64encode(gzip.compress(self.program.binary(), 9, mtime=0)).decode(),
            "places": memory.places,
            "sizes": memory.sizes,
            "state": list(s.state),
            "start": {name: x.tolist() for name, x in self.motion.start.items()},
            "step": self.motion.step,
            "integrator": self.motion.integrator,
            "torques": 0,
            "forces": model.nv,
            "bodies": [b.name for b in model.bodies],
        }
