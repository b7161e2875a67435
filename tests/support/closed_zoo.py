"""The closed mechanisms of the zoo, with what is known of each: mobility, rows, independent rows."""

from __future__ import annotations

from spanloop import zoo
from spanloop.joints import General, Helical

NO_CASES = {"linkage_walker"}  # pins and couplings, which the dense reference does not know; tests of its own

CASES = {  # arguments of the mechanism and of its start, mobility, rows, independent rows
    "four_bar": ("four_bar", (), {}, 1, 5, 2),
    "four_bar ball": ("four_bar", (), {"closure": "spherical"}, 1, 3, 2),
    "four_bar cylindrical": ("four_bar", (), {"closure": "cylindrical"}, 1, 4, 2),
    "four_bar universal": ("four_bar", (), {"closure": "universal"}, 1, 4, 2),
    "slider_crank": ("slider_crank", (), {}, 1, 5, 2),
    "slider_crank offset": ("slider_crank", (), {"offset": -0.05, "closure": "spherical"}, 1, 3, 2),
    "five_bar": ("five_bar", (), {}, 2, 5, 2),
    "five_bar ball": ("five_bar", (), {"closure": "spherical", "base": 1.0}, 2, 3, 2),
    "n_four_bar 1": ("n_four_bar", (1,), {}, 1, 5, 2),
    "n_four_bar 8": ("n_four_bar", (8,), {}, 8, 40, 16),
    "n_four_bar 8 ball": ("n_four_bar", (8,), {"closure": "spherical"}, 8, 24, 16),
    "andrews": ("andrews", (), {}, 1, 15, 6),
    "andrews ball": ("andrews", (), {"closure": "spherical"}, 1, 9, 6),
    "bricard": ("bricard", (), {}, 1, 5, 4),
    "stewart": ("stewart", (), {}, 6, 18, 18),
    "delta": ("delta", (), {}, 3, 18, 18),
    "arms 1": ("arms_with_object", (1,), {}, 6, 6, 6),
    "arms 2": ("arms_with_object", (2,), {}, 6, 12, 12),
    "arms 4": ("arms_with_object", (4,), {}, 6, 24, 24),
    "arms 2 ball": ("arms_with_object", (2,), {"grasp": "spherical"}, 12, 6, 6),
    "arms 3 pin": ("arms_with_object", (3,), {"grasp": "revolute"}, 9, 15, 15),
    "arms 2 cardan": ("arms_with_object", (2,), {"grasp": "universal"}, 10, 8, 8),
    "arms 2 screw": ("arms_with_object", (2,), {"grasp": Helical(pitch=0.02)}, 8, 10, 10),
    "arms 2 slide": ("arms_with_object", (2,), {"grasp": "prismatic"}, 8, 10, 10),
    "arms 2 plane": ("arms_with_object", (2,), {"grasp": "planar"}, 12, 6, 6),
    "arms 2 general": ("arms_with_object", (2,), {"grasp": General(((0, 0, 1, 0.1, 0, 0),))}, 8, 10, 10),
    "five-joint arms 1": ("arms_with_object", (1,), {"arm": "five"}, 5, 6, 6),
    "five-joint arms 2": ("arms_with_object", (2,), {"arm": "five"}, 4, 12, 12),
    "five-joint arms 3": ("arms_with_object", (3,), {"arm": "five"}, 3, 18, 18),
    "pumas 2": ("arms_with_object", (2,), {"arm": zoo.puma()}, 6, 12, 12),
    "three_pumas": ("three_pumas", (), {}, 6, 18, 18),
    "linkage_leg": ("linkage_leg", (), {}, 3, 6, 6),
    "hexapod": ("hexapod", (), {}, 6, 18, 18),
    "scraper": ("carpet_scraper", (), {}, 1, 15, 6),
    "scraper ball": ("carpet_scraper", (), {"closure": "spherical"}, 1, 9, 6),
    "governor": ("flyball_governor", (), {}, 2, 10, 4),
    "governor sprung": ("flyball_governor", (), {"stiffness": 200.0, "damping": 5.0, "arm": 0.25}, 2, 10, 4),
    "arms with linkage": ("arms_with_linkage", (), {}, 7, 27, 18),
}


def mechanism(case):
    name, arguments, options = CASES[case][:3]
    return getattr(zoo, name)(*arguments, **options), getattr(zoo, f"{name}_start")(*arguments, **options)
