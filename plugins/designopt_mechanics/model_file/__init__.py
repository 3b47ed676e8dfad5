"""Mechanisms as YAML files: coordinates, joint functions, loops, frames with bodies, and wires."""
