"""Ready mechanisms: the papers' and the field's standard ones, and families of any size."""

from spanloop.zoo.arms import puma, stanford, stanford_start
from spanloop.zoo.families import chain, pendulum, star, tree
from spanloop.zoo.random import random_model
from spanloop.zoo.walkers import quadruped

MECHANISMS = (pendulum, chain, tree, star, puma, stanford, quadruped, random_model)


def names() -> tuple[str, ...]:
    """Names of the functions of this room that give a model."""
    return tuple(f.__name__ for f in MECHANISMS)


__all__ = [
    "chain",
    "names",
    "pendulum",
    "puma",
    "quadruped",
    "random_model",
    "stanford",
    "stanford_start",
    "star",
    "tree",
]
