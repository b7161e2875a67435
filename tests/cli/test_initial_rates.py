"""--v of mechanisms with loops: advice in words of the command line, which works when it is followed."""

from __future__ import annotations

import re
import shlex

import pytest

import spanloop as sl
from spanloop.cli.shared_arguments import by_name, initial_state
from spanloop.errors import InputError

WRONG = {
    "five_bar": (["drive1=1"], "--v drive2=0"),
    "linkage_leg": (["left_cardan=1,1"], "--v knee=0"),
    "four_bar": (["crank_hinge=1", "rocker_hinge=2"], "Leave out --v rocker_hinge"),
    "flyball_governor": (["sleeve_slide=1", "right_arm_hinge=0"], "Leave out --v right_arm_hinge"),
}


def state(model, file, words):
    return initial_state(sl.Dynamics(model), file, {}, by_name(words, "--v"))


@pytest.mark.parametrize("name", WRONG)
def test_rates_that_do_not_determine_the_others_are_refused_with_advice_that_works(name):
    (words, advice), model = WRONG[name], getattr(sl.zoo, name)()
    with pytest.raises(InputError) as found:
        state(model, f"zoo:{name}", words)
    sentence = str(found.value)
    assert advice in sentence
    assert "complete_velocity" not in sentence
    assert "{" not in sentence
    out = re.search(r"Leave out --v (\w+)", sentence)
    kept = [x for x in words if not out or not x.startswith(f"{out[1]}=")]
    q, v = state(model, f"zoo:{name}", kept + re.findall(r"--v (\w+=[0-9,]+)", sentence))
    assert v[model.v_slice(kept[0].split("=")[0])][0] == pytest.approx(1.0, abs=1e-12)
    assert abs(sl.Dynamics(model).closure_jacobian(q) @ v).max() < 1e-9


def test_names_with_spaces_are_quoted():
    b = sl.Builder("two cranks")
    for k in "12":
        b.body(f"crank {k}", mass=1.0, center=(0.1, 0.0, 0.0), inertia=(0.01, 0.01, 0.01))
        b.revolute(f"pin {k}", "world", f"crank {k}", axis="y")
    b.body("wheel", mass=1.0, inertia=(0.01, 0.01, 0.01))
    b.revolute("gear", "world", "wheel", axis="y")
    b.coupling("mesh", "gear", "pin 1", ratio=2.0)
    model = b.build()
    with pytest.raises(InputError, match='Add --v "pin 2=0"') as found:
        state(model, "x.toml", ["pin 1=1"])
    words = shlex.split(str(found.value).split("Add ")[1])
    assert state(model, "x.toml", ["pin 1=1", words[1]])[1][model.v_slice("pin 2")] == 0.0
