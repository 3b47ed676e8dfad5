"""Systems stated once in CasADi; simulation and linearisation come from the statement."""

from designopt.dynamics.simulate import Simulator, Status, Trajectory
from designopt.dynamics.system import System, Variable

__all__ = ["Simulator", "Status", "System", "Trajectory", "Variable"]
