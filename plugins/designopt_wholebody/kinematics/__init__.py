"""Postures, joint angles and derivatives by time."""
