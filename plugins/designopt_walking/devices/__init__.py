"""Passive devices on a walker: prosthetic joints and exoskeleton springs."""

from designopt_walking.devices.exoskeleton import DEVICES, loaded

__all__ = ["DEVICES", "loaded"]
