"""A model with random numbers of its own, and one with derivatives. Loaded as a plugin file, as a user's would be."""

from typing import TypedDict

from designopt.plugin import Array, model


class Throw(TypedDict):
    value: float
    spread: float


@model("dice", version=1, arrays={"throws": Array(("throw",))})
def dice(design, scenario, arrays, rng) -> tuple[Throw, dict]:
    """Some throws around a mean."""
    throws = design["a"] + scenario.get("width", 1.0) * rng.standard_normal(5)
    return {"value": float(throws.mean()), "spread": float(throws.std())}, dict.fromkeys(arrays, throws)


class Height(TypedDict):
    height: float


@model("dune", version=1)
class Dune:
    """A bowl over a and b that knows its slope."""

    def evaluate(self, design, scenario) -> Height:
        return {"height": (design["a"] - 0.3) ** 2 + 2.0 * (design["b"] + 0.6) ** 2}

    def gradient(self, design, scenario):
        return {"height": {"a": 2.0 * (design["a"] - 0.3), "b": 4.0 * (design["b"] + 0.6)}}
