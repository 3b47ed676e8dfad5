"""Kinematic consistency: positions, velocities and accelerations that fulfil the constraints."""
