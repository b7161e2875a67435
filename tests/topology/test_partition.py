"""Parts of a mechanism that hang together."""

from __future__ import annotations

import spanloop as sl
from spanloop import zoo
from spanloop.topology import mechanism
from spanloop.topology.loop_report import coupled_loops
from spanloop.topology.partition import connected_components, ties


def test_components_keep_the_order_of_their_nodes():
    assert connected_components("abcdef", [("f", "a"), ("c", "b"), ("a", "d")]) == (("a", "d", "f"), ("b", "c"), ("e",))


def test_ties_to_other_nodes_do_not_connect():
    assert connected_components([0, 1, 2], [(0, -1), (1, -1), (1, 2)]) == ((0,), (1, 2))
    assert connected_components([], [(0, 1)]) == ()


def test_ties_are_joints_closures_and_gears():
    m = mechanism(zoo.four_bar())
    assert len(ties(m)) == len(m.links) + len(m.closures)


def test_loops_that_share_a_joint_form_a_group():
    holding = mechanism(zoo.arms_with_object(2))  # both loops run through the object
    assert [len(group) for group in coupled_loops(holding)] == [2]
    apart = sl.Builder("apart").build().attach(zoo.four_bar(), prefix="a_").attach(zoo.four_bar(), prefix="b_")
    assert [len(group) for group in coupled_loops(mechanism(apart))] == [1, 1]
