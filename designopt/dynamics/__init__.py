"""Dynamics: one symbolic statement of a system, simulated, linearised and compiled."""

from designopt.dynamics.linearise import Linearisation, linearise
from designopt.dynamics.signals import Signal, SignalTable
from designopt.dynamics.simulator import Simulator
from designopt.dynamics.system import System, Variable, Vector
from designopt.dynamics.trajectory import SimulationStatus, Trajectory

__all__ = [
    "Linearisation",
    "Signal",
    "SignalTable",
    "SimulationStatus",
    "Simulator",
    "System",
    "Trajectory",
    "Variable",
    "Vector",
    "linearise",
]
