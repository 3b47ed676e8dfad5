"""Recordings made from known motions, so that the error of every step can be measured."""
