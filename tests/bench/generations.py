"""The rate of NSGA-II through two workers, in whichever version of designopt this Python has: for runs in pairs.

``python generations.py STORE COUNT`` prints a line of JSON: durable evaluations a second after the first thousand, by
the times in the journal.
"""

import json
import sqlite3
import sys
from pathlib import Path

import designopt
from designopt.run.runner import run_study
from designopt.study.study import Budget, Stage

sys.path.insert(0, str(Path(designopt.__file__).parents[1] / "tests" / "run"))
from run_cases import make_study, use

BEGIN = 1000

if __name__ == "__main__":
    store, count = Path(sys.argv[1]), int(sys.argv[2])
    stage = Stage("s", use("solver", "nsga2", population=100), Budget(evaluations=count))
    execution = {"executor": "dask", "workers": 2}
    run_study(make_study(minimize=("height", "slope"), stages=(stage,), execution=execution), store)
    db = sqlite3.connect(store / "journal.db")
    times = [finished for (finished,) in db.execute("SELECT finished FROM evaluation ORDER BY finished")]
    print(json.dumps((len(times) - BEGIN) / (times[-1] - times[BEGIN - 1])))
