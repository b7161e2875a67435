"""Ready mechanisms: those of the papers, standard ones of the field, and families of any size.

For a closed mechanism `name(...)`, `name_start(...)` takes the same arguments and returns coordinates q (nq,) at which
its loops are closed.

>>> model, q = sl.zoo.four_bar(crank=0.8), sl.zoo.four_bar_start(crank=0.8)
>>> model.nq == len(q)
True
"""

from collections.abc import Callable
from typing import NoReturn

from spanloop.errors import nearest
from spanloop.model.model import Model
from spanloop.zoo.arms import cycloidal_path, dh_arm, puma, stanford, stanford_start
from spanloop.zoo.families import chain, pendulum, star, tree
from spanloop.zoo.grasping import (
    arms_with_object,
    arms_with_object_start,
    three_pumas,
    three_pumas_path,
    three_pumas_start,
)
from spanloop.zoo.legged import hexapod, hexapod_start, linkage_leg, linkage_leg_start, quadruped, quadruped_start
from spanloop.zoo.linkage_walker import linkage_walker, linkage_walker_start
from spanloop.zoo.linkages import (
    bricard,
    bricard_start,
    flyball_governor,
    flyball_governor_start,
    four_bar,
    four_bar_start,
    n_four_bar,
    n_four_bar_start,
    slider_crank,
    slider_crank_start,
)
from spanloop.zoo.parallel import delta, delta_start, stewart, stewart_start
from spanloop.zoo.random_models import random_model
from spanloop.zoo.saha import carpet_scraper, carpet_scraper_start, five_bar, five_bar_start
from spanloop.zoo.squeezer import andrews, andrews_forces, andrews_start
from spanloop.zoo.two_arms import arms_with_linkage, arms_with_linkage_start

_OPEN: tuple[Callable[..., Model], ...] = (pendulum, chain, tree, star, dh_arm, puma, stanford, quadruped, random_model)
_CLOSED: tuple[Callable[..., Model], ...] = (
    four_bar,
    slider_crank,
    five_bar,
    n_four_bar,
    andrews,
    bricard,
    stewart,
    delta,
    arms_with_object,
    three_pumas,
    linkage_leg,
    linkage_walker,
    hexapod,
    carpet_scraper,
    flyball_governor,
    arms_with_linkage,
)


def names(closed: bool | None = None) -> tuple[str, ...]:
    """Return the names of the functions that return a model.

    closed: True selects those with loops, False those without; None selects all.

    >>> sl.zoo.names(closed=True)[:3]
    ('four_bar', 'slider_crank', 'five_bar')
    """
    chosen = (*_OPEN, *_CLOSED) if closed is None else _CLOSED if closed else _OPEN
    return tuple(f.__name__ for f in chosen)


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"the zoo has no {name!r}; {nearest(name, __all__)}")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "andrews",
    "andrews_forces",
    "andrews_start",
    "arms_with_linkage",
    "arms_with_linkage_start",
    "arms_with_object",
    "arms_with_object_start",
    "bricard",
    "bricard_start",
    "carpet_scraper",
    "carpet_scraper_start",
    "chain",
    "cycloidal_path",
    "delta",
    "delta_start",
    "dh_arm",
    "five_bar",
    "five_bar_start",
    "flyball_governor",
    "flyball_governor_start",
    "four_bar",
    "four_bar_start",
    "hexapod",
    "hexapod_start",
    "linkage_leg",
    "linkage_leg_start",
    "linkage_walker",
    "linkage_walker_start",
    "n_four_bar",
    "n_four_bar_start",
    "names",
    "pendulum",
    "puma",
    "quadruped",
    "quadruped_start",
    "random_model",
    "slider_crank",
    "slider_crank_start",
    "stanford",
    "stanford_start",
    "star",
    "stewart",
    "stewart_start",
    "three_pumas",
    "three_pumas_path",
    "three_pumas_start",
    "tree",
]
