"""What the gallery shows, in the order of its index: every mechanism of the zoo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spanloop.view.gallery import starts
from spanloop.view.gallery.starts import Start
from spanloop.view.video.still import VIEW

ABOVE, SIDE = (-1.4, 1.1), (-1.3, 0.25)  # views of plane mechanisms: that of x and y, that of x and z


@dataclass(frozen=True)
class Exhibit:
    """A page of the gallery: the mechanism's name in the zoo, a title, a caption, how it begins, and from where its
    picture is taken: azimuth and elevation [rad]."""

    name: str
    title: str
    caption: str
    start: Callable[[], Start]
    view: tuple[float, float] = VIEW


EXHIBITS = (
    Exhibit(
        "three_pumas",
        "Three PUMA arms and a disc",
        "Three arms carry one disc along a figure of eight; grasps close the loops. Pull the disc off its path.",
        starts.three_pumas,
    ),
    Exhibit(
        "stewart",
        "Stewart platform",
        "Six slides carry a platform around; ball joints close six loops. Lean on the platform.",
        starts.stewart,
    ),
    Exhibit(
        "four_bar",
        "Four-bar linkage",
        "One degree of freedom: the crank turns, the rocker sways. Pull any bar, or change a length.",
        starts.four_bar,
        SIDE,
    ),
    Exhibit(
        "linkage_walker",
        "Linkage walker",
        "Eight of Theo Jansen's legs and one motor walk on hard ground; 24 loops.",
        starts.linkage_walker,
    ),
    Exhibit("delta", "Delta robot", "Three arms with parallel rods move a platform that never turns.", starts.delta),
    Exhibit(
        "quadruped",
        "Quadruped",
        "Springs and dampers hold its joints; its feet stand on the ground. Push it.",
        starts.quadruped,
    ),
    Exhibit("hexapod", "Hexapod", "A body sways on six legs whose feet stand in ball joints.", starts.hexapod),
    Exhibit(
        "bricard",
        "Bricard's ring",
        "Six bars in a ring that by the count of its joints could not move, and does.",
        starts.bricard,
    ),
    Exhibit(
        "flyball_governor",
        "Flyball governor",
        "Balls lift the sleeve as the spindle turns faster. Pull a ball down.",
        starts.flyball_governor,
    ),
    Exhibit("slider_crank", "Slider-crank", "Crank, rod and piston. Push the piston.", starts.slider_crank, SIDE),
    Exhibit("five_bar", "Five-bar", "Two legs that meet fall under gravity.", starts.five_bar, ABOVE),
    Exhibit(
        "n_four_bar",
        "Four four-bars in series",
        "The coupler of one is the ground of the next.",
        starts.n_four_bar,
        SIDE,
    ),
    Exhibit(
        "andrews",
        "Andrews' squeezing mechanism",
        "Seven bodies in a plane, three loops, one motor: a standard test of solvers, slow, without its spring.",
        starts.andrews,
        ABOVE,
    ),
    Exhibit(
        "carpet_scraper",
        "Carpet scraper",
        "Hoeken's four-bar draws a nearly straight line, and a pantograph enlarges it.",
        starts.carpet_scraper,
        ABOVE,
    ),
    Exhibit(
        "arms_with_object",
        "Three arms and an object",
        "Three six-joint arms hold one body and move it.",
        starts.arms_with_object,
    ),
    Exhibit(
        "arms_with_linkage",
        "Two arms and a four-bar",
        "Loops inside loops: arms with parallelograms hold a four-bar. Turn its crank.",
        starts.arms_with_linkage,
    ),
    Exhibit("linkage_leg", "Linkage leg", "Two cranks pull the ankle through rods.", starts.linkage_leg),
    Exhibit("pendulum", "Triple pendulum", "Three rods that hang from each other.", starts.pendulum, SIDE),
    Exhibit("chain", "Chain", "Six links on hinges across each other.", starts.chain),
    Exhibit("tree", "Tree", "Twelve bodies on hinges, with random axes.", starts.tree),
    Exhibit("star", "Star in free fall", "A free disc with five legs on ball joints, without gravity.", starts.star),
    Exhibit("puma", "PUMA", "Six joints sway, held by springs and dampers and against gravity.", starts.puma),
    Exhibit("stanford", "Stanford arm", "The third joint slides. Springs and dampers hold the arm.", starts.stanford),
    Exhibit(
        "dh_arm",
        "Arm without special numbers",
        "Six hinges of which no twist is a right angle, swinging.",
        starts.dh_arm,
    ),
    Exhibit(
        "random_model", "Random mechanism", "Seven bodies on random joints under random gravity.", starts.random_model
    ),
)
