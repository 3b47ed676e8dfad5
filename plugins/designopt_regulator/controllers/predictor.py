"""The Smith predictor: a model of the plant within the controller compensates the delay.

The difference of the model's outputs without and with delay is added to the measurement (Smith 1957), so the controller
acts on the future output, as far as the model is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from designopt_regulator.plants.linear import Plant
from designopt_regulator.plants.sampled_plant import SampledPlant, hold


class ModelMemory(NamedTuple):
    """The model's states, and what its output without delay and that with it will be at the samples to come."""

    states: tuple[Any, ...]
    prompt: tuple[Any, ...]
    late: tuple[Any, ...]


class AffineOutput(NamedTuple):
    """``P x + q u`` of one sample."""

    P: tuple[Any, ...]
    q: Any


class Predictor(NamedTuple):
    """Numbers of the model's difference equations (`plants.held`): `R` by rows, `G`, and both outputs."""

    R: tuple[tuple[Any, ...], ...]
    G: tuple[Any, ...]
    prompt: AffineOutput
    late: AffineOutput
    samples: int  # of the delay, with the sample in which the command acts

    @classmethod
    def of_plant(cls, plant: Plant, sample_time: float) -> Predictor:
        """A predictor with a model of a single stable `plant`; raises `ValueError` for one that is not stable."""
        if not (np.linalg.eigvals(plant.A).real < 0.0).all():
            raise ValueError("a Smith predictor needs a stable plant: the integral of its model would not decay")
        model = plant_with_delayed_output(plant, sample_time)
        late, prompt = (AffineOutput(tuple(out.P.tolist()), out.q) for out in model.outputs)
        rows = tuple(tuple(row) for row in model.R.tolist())
        return cls(rows, tuple(model.G.tolist()), prompt, late, model.outputs[0].samples)

    def at_rest(self) -> tuple[tuple[float, ...], float]:
        """Its states at rest at the command 1, and its output."""
        states = np.linalg.solve(-np.array(self.R), np.array(self.G))
        return tuple(states.tolist()), float(np.array(self.prompt.P) @ states + self.prompt.q)

    def memory(self, u: Any) -> ModelMemory:
        """The memory at rest at the command `u`."""
        states, output = self.at_rest()
        return ModelMemory(tuple(u * x for x in states), (u * output,), (u * output,) * self.samples)

    def ahead(self, memory: ModelMemory) -> Any:
        """The difference of the outputs without and with delay at this sample."""
        return memory.prompt[0] - memory.late[-1]

    def after(self, memory: ModelMemory, u: Any) -> ModelMemory:
        """State after a sample with the command `u`."""
        x = memory.states

        def output_value(output: AffineOutput) -> Any:
            return _sum(output.P, x) + output.q * u

        states = tuple(at + (_sum(row, x) + gain * u) for at, row, gain in zip(x, self.R, self.G, strict=True))
        return ModelMemory(states, (output_value(self.prompt),), (output_value(self.late), *memory.late[:-1]))


def plant_with_delayed_output(plant: Plant, sample_time: float) -> SampledPlant:
    """The sampled plant with two outputs: with and without its delay."""
    return hold(plant, sample_time, [(plant.C, float(plant.D), 0.0)])


def _sum(factors: Sequence[Any], values: Sequence[Any]) -> Any:
    total = factors[0] * values[0]
    for factor, value in zip(factors[1:], values[1:], strict=True):
        total = total + factor * value
    return total
