"""Passive devices on a walker: prosthetic joints and exoskeleton springs."""

from designopt_walking.devices.exoskeleton import DEVICES, with_device_mass

__all__ = ["DEVICES", "with_device_mass"]
