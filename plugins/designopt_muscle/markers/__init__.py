"""Joint motion from markers: inverse kinematics of OpenSim models, all frames of a trial at once."""
