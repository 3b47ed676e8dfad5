"""Runs or resumes a study in a process of its own: python killed_run.py STORE [resume] [SCHEDULER].

The study takes some 20 s on local workers, or on those of the scheduler at the address SCHEDULER.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "run"))

from run_cases import make_study, use

from designopt.run.progress import progress
from designopt.run.runner import run_study
from designopt.store.errors import RunError
from designopt.study.study import Budget, Stage, StartFrom

PAUSE = 0.02
#: How many evaluations the study takes.
EVALUATIONS = 1140


def study(executor="dask", **execution):
    """Stages that learn batch by batch, some designs asked for twice, and one that asks ahead."""
    stages = (
        Stage("first", use("solver", "walk", size=50, rounds=8)),
        Stage(
            "second", use("solver", "walk", size=20, rounds=8), Budget(evaluations=130), StartFrom("first", "best", 3)
        ),
        Stage("third", use("solver", "follower", count=40, look_ahead=4)),
    )
    return make_study(
        settings={"pause": PAUSE}, scenarios=({}, {"shift": 0.5}), minimize=("height", "slope"), stages=stages,
        execution={"executor": executor, "workers": 2, "grace": 5.0, **execution},
    )  # fmt: skip


def main():
    store, *rest = sys.argv[1:]
    scheduler = next((text for text in rest if "://" in text), None)
    try:
        run_study(study(), Path(store), resume="resume" in rest, progress=progress("json"), scheduler=scheduler)
    except RunError as error:
        print(error, file=sys.stderr)
        sys.exit(99)


if __name__ == "__main__":
    main()
