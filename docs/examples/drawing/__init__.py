"""Pictures of the example pages: for each page a function from what its script left behind to pictures by name.

A picture is a figure of matplotlib, or the text of a moving SVG.
"""

from drawing import arms, bending, chains, changes, cost, fingers, linkages, optimal, surveys, touching, walkers

PICTURES = {
    "07_torques_along_a_path": arms.puma_torques,
    "09_five_bar_torques_and_fall": linkages.five_bar,
    "10_carpet_scraper_torque": linkages.scraper,
    "11_free_fall": arms.free_fall,
    "12_virtual_work_figures": arms.virtual_work,
    "14_arms_with_each_grasp": chains.grasps,
    "15_hexapod": chains.hexapod,
    "16_cost_of_closed_chains": cost.growth,
    "19_grasp_carry_hand_over": changes.hand_over,
    "20_string_pendulum": changes.string,
    "21_clutch": changes.clutch,
    "22_ratchet": changes.ratchet,
    "23_finger_grasp": fingers.finger_grasp,
    "24_capture_in_orbit": changes.capture,
    "25_quadruped": walkers.quadruped,
    "26_linkage_walker": walkers.linkage_walker,
    "27_woodpecker": touching.woodpecker,
    "28_billiards": touching.billiards,
    "29_box_pushed_over_a_table": touching.pushed_box,
    "30_four_bar_on_a_stop": touching.four_bar,
    "31_swing_up": optimal.swing_up,
    "32_minimum_effort": optimal.least_effort,
    "33_ilqr": optimal.ilqr,
    "34_spin_up_beam": bending.spin_up,
    "35_flexible_arm_in_space": bending.space_arm,
    "36_leaf_guidance": bending.leaf_guidance,
    "37_embedded_controller": arms.embedded_controller,
    "39_finite_element_linkage": bending.finite_element_linkage,
    "40_four_bar_synthesis": surveys.synthesis,
    "41_stewart_stiffness": surveys.stiffness,
}
