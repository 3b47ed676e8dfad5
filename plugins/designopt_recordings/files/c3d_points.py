"""The points of a C3D file: which are markers, which are stored results, and what both are worth in SI units."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from designopt.arrays import Floats, Mask
from designopt_recordings.files.c3d_parameters import Group
from designopt_recordings.files.names import number_duplicates, without_prefixes
from designopt_recordings.recording import Points

_ANGLES = {"deg": np.pi / 180.0, "degrees": np.pi / 180.0, "rad": 1.0}
_MOMENTS = {"nmm": 1e-3, "n.mm": 1e-3, "n*mm": 1e-3, "nm": 1.0, "n.m": 1.0, "n*m": 1.0}

#: Parameters of POINT that list results: their kind, the parameter with their unit, the SI unit, factors to it.
_RESULTS: Mapping[str, tuple[str, str, str, Mapping[str, float]]] = {
    "ANGLES": ("angle", "ANGLE_UNITS", "rad", _ANGLES),
    "FORCES": ("force", "FORCE_UNITS", "N", {"n": 1.0}),
    "MOMENTS": ("moment", "MOMENT_UNITS", "N·m", _MOMENTS),
    "POWERS": ("power", "POWER_UNITS", "W", {"w": 1.0, "mw": 1e-3}),
    "SCALARS": ("scalar", "SCALAR_UNITS", "", {}),
}


def moment_factor(unit: str) -> float | None:
    """N·m per `unit`; nothing for an unknown unit."""
    return _MOMENTS.get(unit.replace("·", "").replace(" ", "").lower())


def markers_of(group: Group, points: Floats, residuals: Floats, notes: list[str]) -> tuple[tuple[str, ...], Floats]:
    """Names and positions (n, m, 3) of the markers, in the unit and the axes of the file, NaN where missing.

    Left out are results and trajectories without a label; subjects' prefixes are taken off where names stay unique.
    """
    labels = group.texts("LABELS")[: points.shape[1]]
    results = {name for key in _RESULTS for name in group.texts(key)}
    columns = [i for i, name in enumerate(labels) if name and not name.startswith("*") and name not in results]
    unlabelled_count = points.shape[1] - len(columns) - sum(name in results for name in labels)
    if unlabelled_count:
        notes.append(f"{unlabelled_count} trajectories without a label are skipped")
    names = number_duplicates(without_prefixes([labels[i] for i in columns], notes), "marker", notes)
    positions = np.moveaxis(points[:3, columns], (0, 1, 2), (2, 1, 0))
    return names, _present_positions(positions, residuals[columns].T < 0.0, notes)


def results_of(group: Group, points: Floats, notes: list[str]) -> Points | None:
    """Results of the laboratory's software, in SI units if the stated unit is known."""
    labels = group.texts("LABELS")[: points.shape[1]]
    unread = {name: column for column, name in reversed(list(enumerate(labels)))}  # the first column of a name
    names: list[str] = []
    kinds, units, factors, columns = [], [], [], []
    for key, (kind, parameter, si, is_known) in _RESULTS.items():
        file_unit = group.text(parameter)
        factor = is_known.get(file_unit.replace("·", "").replace(" ", "").lower())
        for name in group.texts(key):
            if name in unread:
                names.append(name)
                kinds.append(kind)
                units.append(si if factor is not None else file_unit)
                factors.append(1.0 if factor is None else factor)
                columns.append(unread.pop(name))
    if not names:
        return None
    values = np.moveaxis(points[:3, columns], (0, 1, 2), (2, 1, 0)) * np.array(factors)[:, None]
    return Points(number_duplicates(names, "result", notes), tuple(kinds), tuple(units), values)


def _present_positions(positions: Floats, missing: Mask, notes: list[str]) -> Floats:
    zero = (positions == 0.0).all(axis=2) & ~missing
    if zero.any():
        notes.append(f"{int(zero.sum())} positions are exactly zero in all coordinates; they are treated as missing")
    gone = missing | zero | ~np.isfinite(positions).all(axis=2)
    if gone.any():
        notes.append(f"{gone.mean():.1%} of the positions of markers are missing")
    return np.where(gone[:, :, None], np.nan, positions)
