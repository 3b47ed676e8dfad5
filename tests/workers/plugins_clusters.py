"""Models of the tests of workers. Loaded as a plugin file, as a user's own script would be."""

import multiprocessing
import time
from typing import TypedDict

import numpy as np

from designopt.plugin import Array, model


class Value(TypedDict):
    value: float


@model("endless_set_up", version=1)
class EndlessSetUp:
    """Its set-up does not end."""

    def prepare(self):
        time.sleep(1000.0)

    def evaluate(self, design, scenario) -> Value:
        return {"value": 0.0}


@model("large", version=1, arrays={"field": Array(("place",), "")})
class Large:
    """Gives an array of `size` numbers."""

    size: int = 1000

    def evaluate(self, design, scenario, arrays) -> tuple[Value, dict]:
        return {"value": design["a"]}, {name: np.full(self.size, design["a"]) for name in arrays}


def _square(x):
    return x * x


@model("parallel_inside", version=1, unchecked=True)
def parallel_inside(design, scenario):
    """Uses processes of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return {"value": pool.map(_square, [design["a"]])[0]}
