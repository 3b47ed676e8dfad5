"""From a laboratory's files to joint angles, moments, muscle forces and joint loads, as curves over cycles."""
