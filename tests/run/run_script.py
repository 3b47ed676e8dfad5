"""Runs or resumes a study in a process of its own: python run_script.py STORE EXECUTOR PAUSE [resume].

In this process an evaluation that takes longer than a minute says that it has begun by a file STORE.evaluates.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from run_cases import make_study, use

from designopt.run.progress import progress
from designopt.run.runner import run_study
from designopt.store.errors import RunError
from designopt.study.study import Budget, Stage, StartFrom


def study(pause, executor):
    """Two stages that learn batch by batch, some designs asked for twice, and one that asks ahead."""
    stages = (
        Stage("first", use("solver", "walk", size=12, rounds=6)),
        Stage(
            "second", use("solver", "walk", size=10, rounds=6), Budget(evaluations=55), StartFrom("first", "best", 3)
        ),
        Stage("third", use("solver", "follower", count=25, look_ahead=4)),
    )
    return make_study(
        settings={"pause": pause}, scenarios=({}, {"shift": 0.5}), minimize=("height", "slope"), stages=stages,
        execution={"executor": executor, "workers": 2, "grace": 5.0},
    )  # fmt: skip


def main():
    store, executor, pause, *rest = sys.argv[1:]
    sleep = time.sleep

    def tell(seconds):
        if seconds > 60.0:
            Path(f"{store}.evaluates").touch()
        sleep(seconds)

    time.sleep = tell
    try:
        run_study(study(float(pause), executor), Path(store), resume="resume" in rest, progress=progress("json"))
    except RunError as error:
        print(error, file=sys.stderr)
        sys.exit(99)


if __name__ == "__main__":
    main()
