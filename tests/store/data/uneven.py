"""The model and the solver of the store `format_1_completion`."""

import math
import time
from typing import Annotated, TypedDict

import numpy as np

from designopt.plugin import Quantity, model, solver


class Height(TypedDict):
    height: Annotated[float, Quantity("m", "height over the origin")]


class Place(TypedDict):
    a: Annotated[float, Quantity("m", "along")]
    b: Annotated[float, Quantity("m", "across")]


@model("uneven_bowl", version=1)
def uneven_bowl(design: Place, scenario) -> Height:
    """A paraboloid whose evaluation takes a time of its own for each design."""
    a, b = design["a"], design["b"]
    time.sleep(0.05 * (1.0 - abs(math.sin(50.0 * (a + b)))))
    return {"height": a**2 + b**2}


@solver("follow_best", version=1)
class FollowBest:
    """Asks ahead: mutates the best of what it was told, in ever smaller steps."""

    look_ahead: int = 4

    def solve(self, problem, evaluate, rng, start):
        space = problem.space
        state = {"rank": np.inf, "best": (space.lower + space.upper)[None] / 2.0, "asked": 0}

        def ask():
            state["asked"] += 1
            step = rng.normal(size=(1, len(space.free))) / (1.0 + 0.1 * state["asked"])
            return space.from_search(state["best"] + step * (space.upper - space.lower) / 5.0)

        def tell(outcomes):
            rank = float(outcomes.objectives[0, 0])
            if rank < state["rank"]:
                state["rank"], state["best"] = rank, space.to_search(outcomes.X)

        evaluate.ahead(ask, tell, self.look_ahead)
