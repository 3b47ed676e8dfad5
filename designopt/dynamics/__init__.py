"""Dynamics: one symbolic statement of a system for simulation, linearisation and collocation."""

from designopt.dynamics.dimensions import check_units
from designopt.dynamics.equations import build_system
from designopt.dynamics.linearise import Linearisation, Mode, linearise
from designopt.dynamics.signals import Signal, SignalTable
from designopt.dynamics.simulation.simulator import Simulator, simulate
from designopt.dynamics.simulation.trajectory import SimulationStatus, Trajectory
from designopt.dynamics.system import System, Variable, Vector

__all__ = [
    "Linearisation",
    "Mode",
    "Signal",
    "SignalTable",
    "SimulationStatus",
    "Simulator",
    "System",
    "Trajectory",
    "Variable",
    "Vector",
    "build_system",
    "check_units",
    "linearise",
    "simulate",
]
