"""The studies of the tests of runs (run_cases.py) can be imported by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "run"))
