"""Why forces of the ground do not fit a motion: they lag it, act beside their points, or belong to another mass."""

from __future__ import annotations

from designopt_muscle.models.root_balance import FOREIGN, RootBalance

from designopt_laboratory.trial.files import TrialFiles


def cause_notes(
    balance: RootBalance | None, files: TrialFiles, sliding_feet: list[str], *, poses_are_certain: bool
) -> list[str]:
    """Why the forces of a trial do not fit its motion, with the way out; empty where they do. `sliding_feet` are notes
    on loaded feet that do not stand. Forces of another trial are told apart only where `poses_are_certain`."""
    if balance is None:
        return []
    name = files.loads_name
    if lag := balance.lag():
        behaviour = "lag behind" if lag > 0.0 else "are ahead of"
        return [
            f"{name}: the forces of the ground {behaviour} the motion {files.name} by about {abs(lag):.3f} s: give the"
            f" trial time_offset: {files.time_offset - lag:.3f} s, which shifts them, or synchronise the files"
        ]
    if sliding_feet:
        return [f"{files.name}: {note}" for note in sliding_feet]
    if displacements := balance.displacements():
        return [
            f"{name}: {record}: the points of application seem to be off by {x:+.2f} m along X and {z:+.2f} m along Z:"
            " check the corners of the plate, and that forces and markers have the same axes and origin"
            for record, (x, z) in displacements.items()
        ]
    if poses_are_certain and (residual := balance.residual()) > FOREIGN:
        return [
            f"{name}: at no time_offset do the forces fit the motion {files.name} ({residual:.0%} of the weight is"
            " left, RMS): do they belong to this trial?"
        ]
    return []
