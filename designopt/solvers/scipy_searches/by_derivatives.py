"""Gradient-based searches: common settings, and values and derivatives in the form of SciPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import InvalidSetting, Quantity
from designopt.problem import Problem
from designopt.solvers.scipy_searches.points import EvaluatedPoint, EvaluatedPoints
from designopt.solvers.scipy_searches.starts import SearchStop, Starts


@dataclass(kw_only=True)
class ByDerivatives:
    """Common settings of gradient-based searches; each defines its `tolerance`."""

    gradient: Annotated[
        Literal["auto", "model", "differences"],
        Quantity(
            "",
            "derivatives: the model's, completed by differences (auto), the model's alone, differences alone",
        ),
    ] = "auto"
    differences: Annotated[
        Literal["forward", "central"],
        Quantity("", "forward or central differences: the latter are more accurate at twice the cost"),
    ] = "forward"
    step: Annotated[
        float,
        Quantity(
            "", "step of differences, as a share of the parameter's range; larger for models with noise", gt=0, le=0.1
        ),
    ] = 1e-6
    tolerance: float
    iterations: Annotated[int, Quantity("", "maximum number of steps of a search", ge=1)] = 200
    starts: Starts = 1

    def wants_gradient(self) -> bool:
        """Whether the search uses the model's derivatives."""
        return self.gradient != "differences"

    def check_gradient(self, problem: Problem) -> None:
        """Raises `InvalidSetting` if the model's derivatives are required and it has none."""
        if self.gradient == "model" and not problem.gradients:
            name = problem.model.plugin.name
            raise InvalidSetting("gradient", f"model '{name}' has no derivatives; use 'differences'")


class Descent:
    """The points of a search: values and derivatives in the form of SciPy, and the last available values."""

    def __init__(self, points: EvaluatedPoints, slopes: SearchDerivatives) -> None:
        self.points = points
        self._slopes = slopes
        self.last: Floats = np.empty(0)

    def begin(self, u: Floats) -> tuple[Floats, Floats]:
        """Values and derivatives at the start, in one batch."""
        slopes = self._slopes.at(u, "began at a design without a result")
        values = self.values(u)
        assert values is not None
        return values, slopes

    def values(self, u: Floats) -> Floats | None:
        """Values at `u` (d,); None without a result."""
        point = self.points.at(u[None])[0]
        if not point.ok:
            return None
        self.last = point.values
        return point.values

    def slopes(self, u: Floats) -> Floats:
        """Derivatives at `u` (k, d)."""
        return self._slopes.at(u, "ended at the edge of designs that have a result")


class SearchDerivatives:
    """Derivatives of a search's values with respect to its coordinates: the model's, else finite differences."""

    def __init__(
        self, points: EvaluatedPoints, settings: ByDerivatives, model: Callable[[Floats, Any], Floats]
    ) -> None:
        self._points = points
        self._settings = settings
        self._model = model
        self._cache: dict[bytes, Floats] = {}

    def at(self, u: Floats, without_result: str) -> Floats:
        """Derivatives (k, d) at `u` (d,). Raises `SearchStop` with the reason if they are not available."""
        key = u.tobytes()
        if key not in self._cache:
            self._cache[key] = self._slopes_at(u, without_result)
        return self._cache[key]

    def _slopes_at(self, u: Floats, without_result: str) -> Floats:
        settings, points = self._settings, self._points
        from_model = settings.wants_gradient() and points.problem.gradients
        if from_model:
            slopes = self._model_slopes(points.at(u[None])[0], without_result)
            if np.isfinite(slopes).all():
                return slopes
            if settings.gradient == "model":
                raise SearchStop(
                    f"ended where the model's derivative with respect to '{self._unknown(slopes)}' is not known"
                )
        differences = points.differences(u, settings.step, central=settings.differences == "central")
        if not points.at(u[None])[0].ok:
            raise SearchStop(without_result)
        slopes = np.where(np.isfinite(slopes), slopes, differences) if from_model else differences
        if not np.isfinite(slopes).all():
            raise SearchStop(f"ended where designs beside it, along '{self._unknown(slopes)}', have no result")
        return slopes

    def _model_slopes(self, point: EvaluatedPoint, without_result: str) -> Floats:
        if not point.ok:
            raise SearchStop(without_result)
        X = point.outcomes.X
        return np.asarray(self._model(X, point.outcomes.figures)[0] * self._points.scale(X))

    def _unknown(self, slopes: Floats) -> str:
        column = int(np.argmin(np.isfinite(slopes).all(axis=0)))
        return self._points.problem.space.names[column]
