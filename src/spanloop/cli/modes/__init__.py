"""`spanloop modes`: natural frequencies, damping and shapes of a mechanism about an equilibrium.

Flexible bodies are taken as they bend under gravity at the position of the joints.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from spanloop.cli.shared_arguments import (
    ZOO,
    add_model,
    add_settings,
    by_name,
    initial_state,
    loading,
    model_of,
    settings_of,
    torques,
    with_settings,
)
from spanloop.cli.terminal import add_json, print_json
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError

EXAMPLES = (
    "spanloop modes zoo:pendulum:2",
    "spanloop modes zoo:stewart --set 'slide*.stiffness=5e4' --set 'slide*.damping=200' --output modes.html",
)
PAGES = (".html", ".htm")


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add = parser.add_argument
    add("--q", metavar="NAME=VALUE", action="append", default=[], help="coordinate of a joint: elbow=30deg")
    about = "constant torque or force at a joint (those of actuated joints that hold the state)"
    add("--tau", metavar="NAME=VALUE", action="append", default=[], help=about)
    add_settings(parser)
    add("--dofs", metavar="NAME", nargs="+", help="independent joints or DoF (those that serve best)")
    add("--output", metavar="FILE", help="write the animated shapes as a page, .html")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    if chosen.output and Path(chosen.output).suffix.lower() not in PAGES:
        raise InputError(f"--output {chosen.output}: expected a page, .html")
    model = with_settings(model_of(chosen.file, **loading(chosen)), settings_of(chosen.set))
    robot = Dynamics(model)
    q, _ = initial_state(robot, chosen.file, by_name(chosen.q, "--q"), {})
    tau = torques(model, by_name(chosen.tau, "--tau")) if chosen.tau else None
    if any(model.gravity) and any(j.kind.bends for j in model.joints):
        q = robot.static_deflection(q)
    found = robot.modes(q, tau, dofs=chosen.dofs)
    if chosen.output:
        found.page(chosen.output, folder=None if chosen.file.startswith(ZOO) else Path(chosen.file).parent)
    if chosen.json:
        print_json(
            {
                "model": model.name,
                "dofs": list(found.dofs),
                "frequencies": found.frequencies.tolist(),
                "angular_frequencies": found.angular_frequencies.tolist(),
                "damping_ratios": found.damping_ratios.tolist(),
                "poles": [[s.real, s.imag] for s in found.poles.tolist()],
                "kinds": list(found.kinds),
                "residual": found.residual,
                "notes": list(found.notes),
            }
        )
        return 0
    print(found)
    if chosen.output:
        print(f"written: {chosen.output}")
    return 0
