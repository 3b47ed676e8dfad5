"""Springs and dampers about one joint: the single-axis knee and the elastic ankle of a prosthesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from designopt.dynamics import Variable
from designopt.lazy import casadi as ca
from designopt_walking.walker import Device, DeviceForces, Walker

#: Extension stop of a prosthetic knee (N m/rad), and damping of an elastic ankle (N m s/rad).
STOP, ANKLE_DAMPING = 1500.0, 1.0
#: Rounding of stops and of springs that act on one side (rad).
ROUNDING = 0.02


def single_axis_knee(side: str) -> Device:
    """Spring and damper about the knee of a `side` ("r" or "l"), relaxed when straight, with an extension stop.

    Parameters: `knee_stiffness` (N m/rad), `knee_damping` (N m s/rad).
    """

    def device(walker: Walker) -> DeviceForces:
        q, dq = angle_and_rate(walker, f"knee_angle_{side}")
        k = Variable("knee_stiffness", "N m/rad", 0.0, 60.0, "spring of the prosthetic knee")
        c = Variable("knee_damping", "N m s/rad", 0.0, 20.0, "damper of the prosthetic knee")
        return device_forces((k, c), lambda k, c: {f"knee_angle_{side}": -k * q - c * dq + stop_torque(q)})

    return device


def stop_torque(angle: Any) -> Any:
    """N m of the extension stop at a knee `angle` (rad, flexion negative); it flexes."""
    return -STOP * positive_part(angle)


def elastic_ankle(side: str) -> Device:
    """Spring about the ankle of a `side`, relaxed in its neutral position, with little damping.

    Parameter: `ankle_stiffness` (N m/rad).
    """

    def device(walker: Walker) -> DeviceForces:
        q, dq = angle_and_rate(walker, f"ankle_angle_{side}")
        k = Variable("ankle_stiffness", "N m/rad", 50.0, 1000.0, "spring of the prosthetic ankle")
        return device_forces((k,), lambda k: {f"ankle_angle_{side}": -k * q - ANKLE_DAMPING * dq})

    return device


def positive_part(x: Any) -> Any:
    """x (rad) where it is positive, 0 elsewhere, rounded over `ROUNDING`."""
    return 0.5 * (x + ca.sqrt(x**2 + ROUNDING**2))


def angle_and_rate(walker: Walker, coordinate: str) -> tuple[Any, Any]:
    """A coordinate of a walker and its rate."""
    return walker.state.named[coordinate], walker.named(walker.state.dz)[coordinate]


def device_forces(variables: Sequence[Variable], moments: Callable[..., dict[str, Any]]) -> DeviceForces:
    """The forces of a device with these parameters; `moments` by coordinate, of a symbol for each of them."""
    symbols = [ca.SX.sym(v.name) for v in variables]
    return DeviceForces(moments(*symbols), list(zip(variables, symbols, strict=True)))
