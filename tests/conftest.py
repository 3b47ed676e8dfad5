"""What tests of all packages share; `command` beside this file is importable by its name."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

# How fast examples are made depends on what else the machine does, and says nothing of the code.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

# The processes of the suite share the processors: threads of BLAS in each of them would wait for one another. Where a
# library reads this before the suite does, as in one process alone, it keeps its threads.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")


def pytest_xdist_auto_num_workers() -> int:
    """Twice as many processes as processors: many a test waits for processes that it starts."""
    return 2 * (os.cpu_count() or 1)


# Modules are compiled once, not by each of the hundreds of processes that tests start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

sys.path.insert(0, str(Path(__file__).parent))
