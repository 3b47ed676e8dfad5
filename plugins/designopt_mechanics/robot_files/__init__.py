"""Robots from files of others: URDF and MJCF become the same tree of frames as a model file in YAML."""
