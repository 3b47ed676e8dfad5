"""Read functions of coordinates."""

from __future__ import annotations

import numpy as np
from designopt_mechanics.robot_files.xml import Element

from designopt_muscle.osim.functions import (
    Function,
    Pieces,
    Polynomial,
    ScaledFunction,
    Sine,
    lines,
    natural_spline,
    simm_spline,
)

#: Most points of a spline: its equations are solved as a whole.
_MOST = 2000

TAGS = {
    "Constant", "LinearFunction", "PolynomialFunction", "MultiplierFunction", "SimmSpline", "NaturalCubicSpline",
    "PiecewiseLinearFunction", "GCVSpline", "Sine",
}  # fmt: skip


def function_in(element: Element) -> Function:
    """The function in an element. Raises `ModelError` if there is none, more than one, or one of another kind."""
    functions = [child for child in element.children if child.tag in TAGS]
    if len(functions) != 1 or len(element.children) != 1:
        unknown = next((child for child in element.children if child.tag not in TAGS), None)
        if unknown is not None:
            raise unknown.error("is not a supported function")
        raise element.error(f"contains {len(functions)} functions, not one")
    return read_function(functions[0])


def read_function(element: Element) -> Function:
    """The function of an element."""
    match element.tag:
        case "Constant":
            return Polynomial((element.number("value", 0.0),))
        case "LinearFunction":
            slope, intercept = element.numbers("coefficients", 2, (1.0, 0.0))
            return Polynomial((slope, intercept))
        case "PolynomialFunction":
            coefficients = element.numbers("coefficients")
            if not coefficients:
                raise element.error("has no coefficients")
            return Polynomial(tuple(coefficients))
        case "MultiplierFunction":
            return ScaledFunction(function_in(element.need("function")), element.number("scale", 1.0))
        case "Sine":
            amplitude, omega, phase = (element.number(name) for name in ("amplitude", "omega", "phase"))
            return Sine(amplitude, omega, phase, element.number("offset", 0.0))
        case "GCVSpline" if element.number("half_order", 3.0) != 2.0 or element.number("error_variance", 0.0) != 0.0:
            raise element.error("is a smoothing or higher spline; only cubic ones through their points are supported")
    return _through_points(element)


def _through_points(element: Element) -> Pieces:
    x, y = np.array(element.numbers("x")), np.array(element.numbers("y"))
    if len(x) != len(y) or not 2 <= len(x) <= _MOST:
        raise element.error(
            f"has {len(x)} abscissae and {len(y)} ordinates; it needs the same number of both, from 2 to {_MOST}"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all() and (np.diff(x) > 0).all()):
        raise element.error("has abscissae that do not increase, or numbers that are not finite")
    if element.tag == "PiecewiseLinearFunction":
        return lines(x, y)
    return simm_spline(x, y) if element.tag == "SimmSpline" else natural_spline(x, y)
