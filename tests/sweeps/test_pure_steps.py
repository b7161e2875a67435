"""Steps are pure: the walk keeps what they return, and nothing can be written into what they are given."""

from __future__ import annotations

import pytest

from spanloop import zoo
from spanloop.sweeps import Program, Values, at_once, inward, outward, walk
from spanloop.topology import mechanism

M = mechanism(zoo.puma())


def program(*sweeps) -> Program:
    return Program("step", ("q",), sweeps, lambda m, here, world: [h.kept for h in here], (len(M.links),))


def test_a_step_at_once_keeps_values_at_the_links_that_it_names():
    def number(m, here, world):
        return Values(n=len(here)), {i: Values(kept=float(i)) for i in range(len(here))}

    assert walk(program(at_once(number)), M, {"q": [0.0] * M.nq}) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def into_here(link, here, other):
    here.kept = 1.0


def into_all(m, here, world):
    here[0].kept = 1.0


def into_world(m, here, world):
    world.kept = 1.0


@pytest.mark.parametrize("sweep", [outward(into_here), inward(into_here), at_once(into_all), at_once(into_world)])
def test_a_step_that_writes_is_refused(sweep):
    with pytest.raises(AttributeError, match="kept: a step returns what is to be kept"):
        walk(program(sweep), M, {"q": [0.0] * M.nq})


def test_nothing_can_be_taken_out():
    with pytest.raises(AttributeError, match="q: a step does not take anything out"):
        del Values(q=1.0).q
