"""What tests of all packages share; helpers in the folders listed below are importable by name."""

import functools
import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How fast examples are made depends on what else the machine does, and says nothing of the code.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

# The processes of the suite share the processors: threads of BLAS in each of them would wait for one another. Where a
# library reads this before the suite does, as in one process alone, it keeps its threads.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

#: Folders of tests are in memory where such a folder has this much room (bytes) and its programs may be run: the suite
#: waits for the disk longer than it computes, and none of its tests cuts the power.
MEMORY, ROOM = "/dev/shm", 2 * 2**30
if os.path.isdir(MEMORY) and os.access(MEMORY, os.W_OK):
    filesystem = os.statvfs(MEMORY)
    if filesystem.f_bavail * filesystem.f_frsize >= ROOM and not filesystem.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)


def pytest_xdist_auto_num_workers() -> int:
    """Three times as many processes as processors: many a test waits for processes that it starts."""
    return 3 * (os.cpu_count() or 1)


# While tests are collected nothing but them is made, and it stays: there is no garbage to look for among it, then or
# later.
gc.disable()


def pytest_collection_finish() -> None:
    """From here on there is garbage; what is there already is none.

    Study files and expressions are many small objects that live as long as a test: looking through them each time that
    700 more are made, as Python does by itself, takes a quarter of the time of some folders.
    """
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()
    count = gc.get_freeze_count()  # Python walks through all of it to count it, and each run asks
    gc.get_freeze_count = lambda: count


#: Files that take longest, by what they wait for too: they begin first, so that none is left alone at the end.
LONG = (
    "workers/test_dask_run.py",
    "run/test_stopped_runs.py",
    "report/test_narrow_screens.py",
    "report/test_paper.py",
    "report/test_browser.py",
    "workers/test_existing_scheduler.py",
    "desk/test_browser.py",
    "test_site.py",
    "test_tutorial.py",
    "solvers/test_conformance.py",
    "designopt_regulator/test_studies.py",
    "test_new.py",
    "test_docs.py",
    "solvers/test_collocation.py",
    "solvers/surrogate/test_search.py",
    "designopt_walking/test_squat.py",
    "test_bundled_studies.py",
    "designopt_muscle/dynamic/test_dynamic_studies.py",
    "designopt_regulator/linear_loop/test_model.py",
    "workers/test_unruly_models.py",
    "designopt_mechanics/test_shoulder.py",
    "designopt_mechanics/test_exoskeleton.py",
    "designopt_regulator/export/test_controller.py",
    "workers/test_batch_systems.py",
    "desk/test_server.py",
    "test_readme.py",
    "test_cli_stores.py",
    "designopt_muscle/models/test_static_sharing.py",
    "designopt_muscle/models/test_wire_sharing.py",
    "designopt_knee/test_branch.py",
    "workers/test_forked_workers.py",
    "workers/test_validate_faults.py",
    "run/test_look_ahead.py",
    "store/test_bit_flips.py",
    "study/mistakes/test_hostile.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long files first, all others in their order."""
    folder = Path(__file__).parent
    rank = {folder / name: position for position, name in enumerate(LONG)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


def pytest_configure(config: pytest.Config) -> None:
    """A fresh clone is compiled once, not by each of the processes that run the tests."""
    from rewriting import rewrite_share

    rewrite_share(config)


# Modules are compiled once, not by each of the hundreds of processes that tests start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

#: Folders whose modules tests import by name: each name is that of one module.
FOLDERS = (
    "", "collocation/problems", "designopt_knee", "designopt_laboratory", "designopt_mechanics",
    "designopt_mechanics/dynamics", "designopt_mechanics/mechanism", "designopt_mechanics/model_file",
    "designopt_mechanics/robot_files", "designopt_muscle", "designopt_muscle/dynamic", "designopt_regulator",
    "designopt_wholebody", "desk", "dynamics", "faults", "mutations", "problem", "report", "run", "solvers", "workers",
)  # fmt: skip
sys.path[:0] = [str(Path(__file__).parent / name) for name in FOLDERS]


@pytest.fixture(scope="session", autouse=True)
def one_look_at_this_working_copy() -> Iterator[None]:
    """Git is asked once for the revision of each model, not by each of the hundreds of runs."""
    from designopt.store import provenance

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "_revision", functools.cache(provenance._revision))
        yield


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Iterator[None]:
    """Runs keep the process that their workers are forked from for the next run, unless the environment has changed."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)
    return (yield)


pytest_fixture_setup = pytest_pyfunc_call


@pytest.fixture
def handled() -> Iterator[None]:
    """Ctrl-C as in a terminal; a shell lets what it starts in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
