"""What becomes of every URDF of the wheel example-robot-data: bodies, freedoms and couplings, or the reason why not.

The freedoms were compared with Pinocchio's when the table was made; the wheel's version was 5.0.0.
"""

from __future__ import annotations

LOADED = {
    "a1_description/urdf/a1.urdf": (23, 12, 0),
    "alex_description/urdf/alex_nub_hands.urdf": (31, 19, 0),
    "alex_description/urdf/alex_sake_hands.urdf": (39, 23, 0),
    "alexander_description/urdf/alexander_v1.lowerBodyOnly.urdf": (23, 13, 0),
    "allegro_hand_description/urdf/allegro_left_hand.urdf": (21, 16, 0),
    "allegro_hand_description/urdf/allegro_right_hand.urdf": (21, 16, 0),
    "anymal_b_simple_description/robots/anymal-kinova.urdf": (37, 18, 0),
    "anymal_b_simple_description/robots/anymal.urdf": (23, 12, 0),
    "anymal_c_simple_description/urdf/anymal.urdf": (78, 12, 0),
    "asr_twodof_description/urdf/TwoDofs.urdf": (4, 2, 0),
    "b1_description/urdf/b1-z1.urdf": (40, 19, 0),
    "b1_description/urdf/b1.urdf": (31, 12, 0),
    "baxter_description/urdf/baxter.urdf": (57, 19, 2),
    "bluevolta_description/urdf/bluevolta.urdf": (10, 0, 0),
    "bluevolta_description/urdf/bluevolta_bravo7_gripper.urdf": (22, 8, 0),
    "bluevolta_description/urdf/bluevolta_bravo7_no_ee.urdf": (20, 6, 0),
    "bolt_description/robots/bolt.urdf": (9, 6, 0),
    "borinot_description/urdf/borinot_flying_arm_2.urdf": (4, 2, 0),
    "bravo7_description/urdf/bravo7_gripper.urdf": (12, 8, 0),
    "bravo7_description/urdf/bravo7_no_ee.urdf": (10, 6, 0),
    "centauro_description/urdf/centauro.urdf": (56, 39, 0),
    "double_pendulum_description/urdf/double_pendulum.urdf": (3, 2, 0),
    "double_pendulum_description/urdf/double_pendulum_continuous.urdf": (3, 2, 0),
    "double_pendulum_description/urdf/double_pendulum_simple.urdf": (4, 2, 0),
    "falcon_description/urdf/falcon_bravo7_gripper.urdf": (21, 8, 0),
    "falcon_description/urdf/falcon_bravo7_no_ee.urdf": (19, 6, 0),
    "finger_edu_description/robots/finger_edu.urdf": (6, 3, 0),
    "g1_description/urdf/g1_29dof_rev_1_0.urdf": (39, 29, 0),
    "g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf": (53, 43, 0),
    "go1_description/urdf/go1.urdf": (46, 12, 0),
    "go2_description/urdf/go2.urdf": (31, 12, 0),
    "hector_description/robots/quadrotor_base.urdf": (1, 0, 0),
    "hextilt_description/urdf/hextilt_flying_arm_5.urdf": (8, 5, 0),
    "human_description/robots/human.urdf": (37, 36, 0),
    "hyq_description/robots/hyq_no_sensors.urdf": (19, 12, 0),
    "icub_description/robots/icub.urdf": (56, 32, 0),
    "icub_description/robots/icub_reduced.urdf": (56, 29, 0),
    "iris_description/robots/iris.urdf": (6, 4, 0),
    "iris_description/robots/iris_simple.urdf": (6, 0, 0),
    "kinova_description/robots/kinova.urdf": (13, 6, 0),
    "laikago_description/urdf/laikago.urdf": (21, 12, 0),
    "panda_description/urdf/panda.urdf": (13, 9, 1),
    "panda_description/urdf/panda_collision.urdf": (13, 9, 1),
    "pr2_description/urdf/pr2.urdf": (82, 30, 10),
    "quadruped_description/urdf/quadruped.urdf": (13, 8, 0),
    "romeo_description/urdf/romeo.urdf": (82, 55, 22),
    "romeo_description/urdf/romeo_small.urdf": (58, 31, 0),
    "simple_humanoid_description/urdf/simple_humanoid.urdf": (31, 29, 0),
    "simple_humanoid_description/urdf/simple_humanoid_classical.urdf": (31, 29, 0),
    "so_arm_description/urdf/so100.urdf": (7, 6, 0),
    "so_arm_description/urdf/so101.urdf": (8, 6, 0),
    "solo_description/robots/solo.urdf": (13, 8, 0),
    "solo_description/robots/solo12.urdf": (17, 12, 0),
    "talos_data/robots/talos_full_v2.urdf": (60, 44, 12),
    "talos_data/robots/talos_full_v2_box.urdf": (60, 44, 12),
    "talos_data/robots/talos_left_arm.urdf": (17, 7, 0),
    "talos_data/robots/talos_reduced.urdf": (60, 32, 0),
    "talos_data/robots/talos_reduced_box.urdf": (60, 32, 0),
    "talos_data/robots/talos_reduced_corrected.urdf": (60, 32, 0),
    "tiago_description/robots/tiago.urdf": (78, 48, 0),
    "tiago_description/robots/tiago_dual.urdf": (130, 101, 0),
    "tiago_description/robots/tiago_no_hand.urdf": (38, 12, 0),
    "tiago_pro_description/robots/tiago_pro.urdf": (58, 33, 10),
    "ur_description/urdf/ur10_joint_limited_robot.urdf": (10, 6, 0),
    "ur_description/urdf/ur10_robot.urdf": (10, 6, 0),
    "ur_description/urdf/ur3_gripper.urdf": (10, 6, 0),
    "ur_description/urdf/ur3_joint_limited_robot.urdf": (10, 6, 0),
    "ur_description/urdf/ur3_robot.urdf": (10, 6, 0),
    "ur_description/urdf/ur5_gripper.urdf": (10, 6, 0),
    "ur_description/urdf/ur5_joint_limited_robot.urdf": (10, 6, 0),
    "ur_description/urdf/ur5_robot.urdf": (10, 6, 0),
    "xarm_description/urdf/xarm7.urdf": (9, 7, 0),
    "z1_description/urdf/z1.urdf": (9, 7, 0),
}

# broken files: two name joints or links that are not there, one holds no robot, in one a link cannot exist
BROKEN = {
    "alex_description/urdf/alex_psyonic_hands.urdf": (
        "coupling 'Left_index_q2_mimic' (alex_psyonic_hands.urdf:1037): 'index_q1' is not a joint; "
        "did you mean 'Left_index_q1'?"
    ),
    "falcon_description/urdf/falcon.urdf": (
        "falcon.urdf:180: joint 'top_propeller_joint': its child 'Z_propeller' is not a link; "
        "did you mean 'FR_propeller'?"
    ),
    "romeo_description/urdf/romeo_laas_small.urdf": (
        "body 'LHipPitch_link' (romeo_laas_small.urdf:358) with a body fixed to it: its principal moments of inertia "
        "are -0.00272, 0.03951, 0.05405 kg m²; no body can have a negative one. "
        "Was a sign, a unit or the order of axes lost?"
    ),
    "ur_description/urdf/ur3.urdf": (
        "ur3.urdf:6: <robot> has no <link>; expected one at least. Did xacro get no robot to expand?"
    ),
}
