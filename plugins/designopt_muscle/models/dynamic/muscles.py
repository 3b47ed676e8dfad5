"""The muscles of a trial with their tendons and activation: parameters of the model, paths over the motion."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_table
from designopt_recordings.signals.even_steps import linear_values

from designopt.arrays import Floats
from designopt.plugin import InputFile
from designopt_muscle.dynamic_sharing.muscles import DynamicMuscles
from designopt_muscle.geometry.geometry import muscle_geometry
from designopt_muscle.models.errors import readable
from designopt_muscle.models.trial import Trial

#: Least activation and excitation where the model has a smaller one.
_MIN_ACTIVATION = 1e-3


def dynamic_muscles(trial: Trial, *, rigid: bool, passive: bool) -> DynamicMuscles:
    """The muscles of `trial`; `rigid` makes all tendons rigid, `passive` includes passive fibre forces.

    Parameters that a model lacks have the defaults of De Groote et al. (2016).
    """
    geometry = muscle_geometry(trial.model, trial.values)
    zeros = np.zeros(len(trial.balance.time))
    rates = np.column_stack([trial.rates.get(name, zeros) for name in geometry.coordinates])
    muscles = trial.model.muscles

    def shape(*names: str, default: float) -> Floats:
        return np.array([next((m.shape[n] for n in names if n in m.shape), default) for m in muscles])

    strain = shape("passive_fiber_strain_at_one_norm_force", "FmaxMuscleStrain", default=0.6)
    return DynamicMuscles(
        names=tuple(m.name for m in muscles),
        lengths=geometry.lengths,
        speeds=geometry.speeds(rates),
        force=np.array([m.force for m in muscles]),
        optimal=np.array([m.fibre for m in muscles]),
        slack=np.array([m.slack for m in muscles]),
        pennation=np.array([m.pennation for m in muscles]),
        fastest=np.array([m.fastest for m in muscles]),
        rigid=np.array([m.rigid or rigid for m in muscles]),
        tendon_strain=np.array([m.tendon_strain for m in muscles]),
        width=shape("active_force_width_scale", default=1.0),
        damping=shape("fiber_damping", default=0.01),
        rise=np.array([m.rise for m in muscles]),
        fall=np.array([m.fall for m in muscles]),
        passive_strain=strain if passive else np.full(len(muscles), np.inf),
        min_activation=np.array([max(m.min_control, _MIN_ACTIVATION) for m in muscles]),
    )


def fibre_lengths(file: InputFile, track: Mapping[str, str], muscles: tuple[str, ...], time: Floats) -> Floats:
    """(n, k) m measured fibre lengths of `muscles` at `time` (n,) s, linear between the rows of a table.

    NaN without a measurement. Raises `TrialError` for missing columns and muscles without a row within the times.
    """
    lengths = np.full((len(time), len(muscles)), np.nan)
    with readable(file):
        table = read_table(file)
        for muscle, column in track.items():
            values = linear_values(table.time, table.column(column), time)
            if not np.isfinite(values).any():
                raise RecordingError(f"the fibre of '{muscle}' has no length within the motion")
            lengths[:, muscles.index(muscle)] = values
    return lengths
