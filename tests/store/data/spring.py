"""The model of the store format_2, with cheap evaluations. Never to be changed."""

from typing import Annotated, TypedDict

from designopt.plugin import Fidelity, Quantity, model


class Design(TypedDict):
    stiffness: Annotated[float, Quantity("N/m", "stiffness of the spring")]
    damping: Annotated[float, Quantity("N*s/m", "damping")]


class Response(TypedDict):
    sway: Annotated[float, Quantity("m", "what is felt above")]
    travel: Annotated[float, Quantity("m", "way of the spring")]


@model("format_2_spring", version=1, fidelity=Fidelity({"steps": 4}, cost=0.1))
def format_2_spring(
    design: Design, scenario, *, steps: Annotated[int, Quantity("", "steps of the sum", ge=1)] = 64
) -> Response:
    """A mass on a spring under a few waves; sums and products only."""
    k, c = design["stiffness"] / 1000.0, design["damping"] / 100.0
    sway = sum((0.2 * k + 0.1 * c * i / steps) ** 2 for i in range(steps)) / steps
    travel = sum(1.0 / (0.5 + k + c * i / steps) for i in range(steps)) / steps
    return {"sway": sway, "travel": 0.1 * travel}
