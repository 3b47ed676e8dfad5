"""Outputs and arrays of the static sharing of a trial."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

import numpy as np
from designopt_mechanics.sharing.static.sharing import Sharing
from designopt_mechanics.sharing.status import SharingStatus

from designopt.arrays import Floats, Mask
from designopt.plugin import Array, Diverged
from designopt.plugin import Quantity as Q
from designopt_muscle.geometry.drawing import SCENE_AXES
from designopt_muscle.models.device import DeviceMoments

#: Largest moment of a reserve over the largest net moment of its coordinate (OpenSim's guide to CMC), and net moment
#: over the largest one of all coordinates, as which a smaller one counts.
LARGEST_RESERVE, _SMALL_MOMENT = 0.1, 0.05
#: Value of `strength_needed` where no strength is sufficient.
_MOST_STRENGTH = 1e6
#: Digits of it that its linear program is sure of; with more, designs of the same strength would beat each other.
_DIGITS = 9


class SharingOutputs(TypedDict):
    """Figures over all frames with an answer."""

    mean_cost: Annotated[float, Q("", "of the criterion, mean over the frames")]
    mean_squared_activation: Annotated[float, Q("", "over muscles and frames")]
    mean_activation: Annotated[float, Q("", "over muscles and frames")]
    peak_activation: Annotated[float, Q("", "of any muscle")]
    peak_force: Annotated[float, Q("N", "of any muscle along its tendon")]
    infeasible_frames: Annotated[float, Q("", "frames proved to be beyond the muscles, or beyond their rate limit")]
    unanswered_frames: Annotated[float, Q("", "frames with bad input, an empty band, or not converged")]
    bad_input_frames: Annotated[float, Q("", "frames in which a needed number is missing or not finite", notable=True)]
    empty_band_frames: Annotated[
        float, Q("", "frames in which the band around measured activity leaves no activation", notable=True)
    ]
    unconverged_frames: Annotated[float, Q("", "frames whose solution did not converge", notable=True)]
    reserve_frames: Annotated[
        float, Q("", "frames that are balanced only with a reserve beyond 'reserve_warning'", notable=True)
    ]
    peak_shortfall: Annotated[float, Q("", "largest missing generalised force of a row, in N m or N")]
    strength_needed: Annotated[
        float, Q("", "factor on these muscles' strength that makes all frames feasible, at most 1e6")
    ]
    peak_reserve: Annotated[float, Q("", "largest generalised force of a reserve, in N m or N")]
    reserve_share: Annotated[
        float,
        Q(
            "",
            "largest generalised force of a reserve over the largest net one of its coordinate: if it is large, muscles"
            " are not what carries the motion",
            usual=(0.0, LARGEST_RESERVE),
            mistakes="columns, signs and units of the trial, strength, a large reserve",
        ),
    ]
    peak_reaction: NotRequired[Annotated[float, Q("N", "largest norm of a joint reaction that the settings name")]]
    device_work: Annotated[float, Q("J", "absolute work of the drive, without that of the spring")]
    peak_device: Annotated[float, Q("N m", "largest moment of spring and drive together")]
    worst_residual: Annotated[float, Q("", "largest relative error of a balance")]


ARRAYS = {
    "time": Array(("time",), "s", "of the frames"),
    "muscles": Array(("muscle",), "", "names", dtype="str"),
    "coordinates": Array(("row",), "", "names of the balanced coordinates", dtype="str"),
    "activations": Array(("time", "muscle"), "", "NaN in frames without a solution"),
    "forces": Array(("time", "muscle"), "N", "along the tendon, active and passive"),
    "muscle_moments": Array(("time", "row", "muscle"), "", "of each muscle, in N m or N"),
    "net_moments": Array(("time", "row"), "", "that muscles and reserves balance, in N m or N"),
    "device_moment": Array(("time",), "N m", "of spring and drive at the assisted coordinate"),
    "reserves": Array(("time", "row"), "", "in N m or N"),
    "shortfall": Array(("time", "row"), "", "what is missing in infeasible frames, in N m or N"),
    "multipliers": Array(("time", "row"), "", "change of the cost per unit of the needed moment"),
    "status": Array(
        ("time",), "", "0 to 20 balanced, 100 infeasible, 105 beyond the rate limit, above that no solution"
    ),
    "signals": Array(("time", "muscle"), "", "measured activity, scaled; NaN for muscles without"),
    "joints": Array(("joint",), "", "whose reactions the settings name", dtype="str"),
    "reactions": Array(("time", "joint", "component"), "N", "force of the parent on the child, in the requested axes"),
    "margin": Array(
        ("time",),
        "",
        "share of the strength that the muscles could lose and still balance the frame alone; negative: "
        "they lack strength",
    ),
    "strength_factor": Array(("time",), "", "on the strength, that makes a frame feasible"),
    "notes": Array(("note",), "", "notes on model, motion and fibres", dtype="str"),
    "skeleton": Array(
        ("time", "vertex", "axis"), "m", "drawing of the bones: x, y in a plane, or x, -z, y", components=SCENE_AXES
    ),
    "paths": Array(("time", "muscle", "vertex", "axis"), "m", "drawing of the muscles, as skeleton"),
    "fibre_lengths": Array(("time", "muscle"), "", "in optimal lengths"),
}


def figures(sharing: Sharing, device: DeviceMoments, reactions: Floats) -> SharingOutputs:
    """Figures of a sharing with a `device` and `reactions` (n, joints, 3) N.

    Raises `Diverged` where no frame has an answer.
    """
    has_solution = np.isfinite(sharing.activations).all(axis=1)
    if not has_solution.any():
        raise Diverged(f"no frame of the trial has a solution: {sharing.summary()}", reason="no_frames")
    a = sharing.activations[has_solution]
    factor = np.nan_to_num(sharing.strength_factor[has_solution], nan=1.0).max()
    infeasible = (sharing.status == SharingStatus.INFEASIBLE) | (sharing.status == SharingStatus.TOO_FAST)
    outputs = SharingOutputs(
        mean_cost=float(sharing.cost[has_solution].mean()),
        mean_squared_activation=float((a**2).mean()),
        mean_activation=float(a.mean()),
        peak_activation=float(a.max()),
        peak_force=float(sharing.forces[has_solution].max()),
        infeasible_frames=float(infeasible.sum()),
        unanswered_frames=float((~has_solution).sum()),
        bad_input_frames=float((sharing.status == SharingStatus.BAD_INPUT).sum()),
        empty_band_frames=float((sharing.status == SharingStatus.EMPTY_BOUNDS).sum()),
        unconverged_frames=float((sharing.status == SharingStatus.NOT_CONVERGED).sum()),
        reserve_frames=float((sharing.status == SharingStatus.RESERVE_ACTIVE).sum()),
        peak_shortfall=float(np.abs(sharing.shortfall[has_solution]).max()),
        strength_needed=float(f"{min(factor, _MOST_STRENGTH):.{_DIGITS}g}"),
        peak_reserve=float(np.abs(sharing.reserves[has_solution]).max()),
        reserve_share=max(reserve_shares(sharing, np.asarray(has_solution)).values(), default=0.0),
        device_work=device.drive_work(sharing.balance.time),
        peak_device=float(np.nanmax(np.abs(device.total))),
        worst_residual=float(sharing.residual[has_solution].max()),
    )
    if reactions.shape[1]:
        outputs["peak_reaction"] = float(np.nanmax(np.linalg.norm(reactions[has_solution], axis=2), initial=0.0))
    return outputs


def reserve_shares(sharing: Sharing, frames: Mask) -> dict[str, float]:
    """The largest moment of the reserve of each coordinate over its largest net moment, in these frames (n,). A net
    moment counts as at least a twentieth of the largest one of all coordinates."""
    has_solution = frames & np.isfinite(sharing.activations).all(axis=1)
    reserves, moments = (
        np.abs(values[has_solution]).max(axis=0, initial=0.0) for values in (sharing.reserves, sharing.balance.moments)
    )
    largest = np.maximum(moments, _SMALL_MOMENT * moments.max(initial=0.0))
    shares = reserves / np.where(largest > 0.0, largest, np.inf)
    return dict(zip(sharing.balance.rows, shares.tolist(), strict=True))
