"""A MuJoCo model (MJCF or URDF) as a model."""
