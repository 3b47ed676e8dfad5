"""Outputs and arrays of the dynamic sharing of a trial."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from designopt.plugin import Array
from designopt.plugin import Quantity as Q
from designopt_muscle.dynamic_sharing.equations import DynamicTrial
from designopt_muscle.dynamic_sharing.sharing import DynamicSharing


class DynamicOutputs(TypedDict):
    """Figures of the solution over the motion."""

    objective: Annotated[float, Q("s", "what is minimised: weighted effort, tracking error and rates of tendon forces")]
    effort: Annotated[float, Q("s", "integral of squared excitations and reserves, with their weights")]
    tracking_error: NotRequired[
        Annotated[float, Q("s", "integral of squared differences to measured signals; none without any")]
    ]
    fibre_error: NotRequired[
        Annotated[float, Q("s", "integral of squared differences to measured fibre lengths, in optimal ones")]
    ]
    mean_squared_activation: Annotated[float, Q("", "over muscles and points")]
    peak_activation: Annotated[float, Q("", "of any muscle")]
    peak_excitation: Annotated[float, Q("", "of any muscle")]
    peak_force: Annotated[float, Q("N", "of any muscle along its tendon")]
    peak_reserve: Annotated[float, Q("", "largest generalised force of a reserve, in N m or N")]
    peak_device: Annotated[float, Q("N m", "largest moment of spring and drive together")]
    worst_residual: Annotated[float, Q("", "largest relative error of an equation")]


ARRAYS = {
    "time": Array(("time",), "s", "points of the mesh"),
    "muscles": Array(("muscle",), "", "names", dtype="str"),
    "coordinates": Array(("row",), "", "names of the balanced coordinates", dtype="str"),
    "activations": Array(("time", "muscle"), "", ""),
    "excitations": Array(("time", "muscle"), "", ""),
    "signals": Array(("time", "muscle"), "", "measured, with their scales; NaN where there is none"),
    "forces": Array(("time", "muscle"), "N", "along the tendons"),
    "tendon_forces": Array(("time", "muscle"), "", "relative to the maximum isometric force"),
    "fibre_lengths": Array(("time", "muscle"), "", "in optimal lengths"),
    "fibre_speeds": Array(("time", "muscle"), "", "in maximum speeds of shortening, which is negative"),
    "muscle_moments": Array(("time", "row", "muscle"), "", "of each muscle, in N m or N"),
    "reserves": Array(("time", "row"), "", "in N m or N"),
    "net_moments": Array(("time", "row"), "", "that muscles and reserves balance, in N m or N"),
    "device_moment": Array(("time",), "N m", "of spring and drive at the assisted coordinate"),
    "factors": Array(("factor",), "", "names of the factors of the setting 'factors'", dtype="str"),
    "information": Array(("factor", "other"), "s", "second derivatives of the least objective by the factors"),
}


def figures(trial: DynamicTrial, sharing: DynamicSharing) -> DynamicOutputs:
    """The figures of a solution."""
    outputs = DynamicOutputs(
        objective=sharing.objective,
        effort=sharing.effort,
        mean_squared_activation=float((sharing.activations**2).mean()),
        peak_activation=float(sharing.activations.max()),
        peak_excitation=float(sharing.excitations.max()),
        peak_force=float(sharing.forces.max()),
        peak_reserve=float(np.abs(trial.reserves.optimal * sharing.reserves).max()),
        peak_device=float(np.abs(sharing.device).max()),
        worst_residual=sharing.largest_residual,
    )
    if trial.terms.tracking is not None:
        outputs["tracking_error"] = sharing.tracking
    if trial.terms.fibres is not None:
        outputs["fibre_error"] = sharing.fibres
    return outputs


def tables(trial: DynamicTrial, sharing: DynamicSharing) -> dict[str, NDArray[Any]]:
    """The arrays of a solution that need nothing more than it."""
    moments = np.array(trial.balance.moments)
    if trial.device is not None:
        moments[:, trial.balance.rows.index(trial.device.row)] -= sharing.device
    signals = np.full(sharing.activations.shape, np.nan)
    if trial.terms.tracking is not None:
        scales = [sharing.parameters.get(f"signal_scale_{name}", 1.0) for name in trial.names]
        signals = trial.terms.tracking.signals * scales
    return {
        "time": sharing.time,
        "muscles": np.array(trial.balance.columns),
        "coordinates": np.array(trial.balance.rows),
        "activations": sharing.activations,
        "excitations": sharing.excitations,
        "signals": signals,
        "forces": sharing.forces,
        "tendon_forces": sharing.forces / trial.isometric(sharing.parameters),
        "fibre_lengths": sharing.fibre_lengths,
        "fibre_speeds": sharing.fibre_speeds,
        "muscle_moments": trial.balance.arms * sharing.forces[:, None, :],
        "reserves": trial.reserves.optimal * sharing.reserves,
        "net_moments": moments,
        "device_moment": sharing.device,
    }
