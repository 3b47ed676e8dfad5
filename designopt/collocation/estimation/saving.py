"""An estimate beside its solution, as plain arrays: reading them executes no code."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.collocation.estimation.result import ConfidenceInterval, Estimate, Fit
from designopt.collocation.solution.solution import Solution

Arrays = dict[str, NDArray[Any]]

#: Common prefix of the names of its arrays.
PREFIX = "estimate/"
#: Tables of a fit by name of a variable.
TABLES = ("measured", "fitted", "sigma", "residuals", "bands")
#: Fields stored unchanged.
PLAIN = (
    "level", "names", "chi_squared", "count", "degrees_of_freedom", "p_value", "dimension", "rank", "condition",
    "undetermined", "weakest", "doubts",
)  # fmt: skip


def estimate_arrays(estimate: Estimate) -> Arrays:
    """`estimate` without its solution, as arrays by name."""
    header = {name: getattr(estimate, name) for name in PLAIN}
    header["unknowns"] = {name: vars(interval) for name, interval in estimate.unknowns.items()}
    header["phases"] = {name: {t: list(getattr(fit, t)) for t in TABLES} for name, fit in estimate.fits.items()}
    text = json.dumps(_json_value(header), allow_nan=False)
    arrays: Arrays = {"header": np.frombuffer(text.encode(), np.uint8), "covariance": estimate.covariance}
    for phase, fit in estimate.fits.items():
        arrays[f"{phase}/times"] = fit.times
        arrays.update({f"{phase}/{t}/{n}": values for t in TABLES for n, values in getattr(fit, t).items()})
    return {f"{PREFIX}{name}": np.asarray(array) for name, array in arrays.items()}


def estimate_from(arrays: Mapping[str, NDArray[Any]], solution: Solution) -> Estimate | None:
    """The inverse of `estimate_arrays`, for a `solution`; None without an estimate."""
    if f"{PREFIX}header" not in arrays:
        return None
    header = _decode(json.loads(bytes(np.asarray(arrays[f"{PREFIX}header"], np.uint8)).decode()))
    fits = {}
    for phase, tables in header["phases"].items():
        tables_of = {t: {n: np.asarray(arrays[f"{PREFIX}{phase}/{t}/{n}"], float) for n in tables[t]} for t in TABLES}
        fits[phase] = Fit(np.asarray(arrays[f"{PREFIX}{phase}/times"], float), **tables_of)
    plain: dict[str, Any] = {name: tuple(v) if isinstance(v := header[name], list) else v for name in PLAIN}
    unknowns = {name: ConfidenceInterval(**interval) for name, interval in header["unknowns"].items()}
    covariance = np.asarray(arrays[f"{PREFIX}covariance"], float)
    return Estimate(solution=solution, unknowns=unknowns, covariance=covariance, fits=fits, **plain)


def _json_value(value: Any) -> Any:
    """`value` with numbers that JSON lacks converted to text."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, Mapping):
        return {name: _json_value(v) for name, v in value.items()}
    return [_json_value(v) for v in value] if isinstance(value, (list, tuple)) else value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return float(value["float"]) if list(value) == ["float"] else {name: _decode(v) for name, v in value.items()}
    return [_decode(v) for v in value] if isinstance(value, list) else value
