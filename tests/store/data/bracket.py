"""The model of the stores in this folder, which the first store format was written with. Never to be changed."""

from typing import Annotated, TypedDict

from designopt.plugin import Array, Diverged, InvalidDesign, Quantity, model, objective


class Design(TypedDict):
    thickness: Annotated[float, Quantity("m", "thickness")]
    ribs: Annotated[float, Quantity("", "number of ribs")]
    material: Annotated[str, Quantity("", "steel or oak")]
    load: Annotated[float, Quantity("N", "its own load")]


class Storm(TypedDict, total=False):
    force: Annotated[float, Quantity("N", "further load")]


class Bracket(TypedDict):
    mass: Annotated[float, Quantity("kg", "mass")]
    sag: Annotated[float, Quantity("m", "deflection of the tip")]


@model("format_1_bracket", version=2, arrays={"bending": Array(("place",), "m")})
def format_1_bracket(
    design: Design, scenario: Storm, arrays, *, length: Annotated[float, Quantity("m", "length")] = 0.5
) -> tuple[Bracket, dict]:
    """A cantilever of a few ribs; too slender ones fall over, a rib too many is refused.

    Sums and products only, so
    that every processor gives the same figures.
    """
    modulus, density = {"steel": (210.0e9, 7800.0), "oak": (11.0e9, 700.0)}[design["material"]]
    t, n = design["thickness"], design["ribs"]
    if n > 8:
        raise InvalidDesign(f"{n} ribs do not fit")
    if t < 0.010 and scenario.get("force", 0.0) > 1000.0:
        raise Diverged("the bracket fell over", reason="slender")
    stiffness = modulus * n * 0.02 * t * t * t / 4.0 / (length * length * length)
    sag = (design["load"] + scenario.get("force", 0.0)) / stiffness
    have = {"bending": [sag * i * i / 16.0 for i in range(5)]}
    return {"mass": density * n * 0.02 * t * length, "sag": sag}, {name: have[name] for name in arrays}


@objective("format_1_clearance", version=1)
def format_1_clearance(
    sag, *, gap: Annotated[float, Quantity("m", "room")] = 0.02
) -> Annotated[float, Quantity("m", "what is left of the room")]:
    """Room minus deflection."""
    return gap - sag
