"""Mechanisms with closed loops: data, solved loops, joint forces, equations of motion and signals."""
