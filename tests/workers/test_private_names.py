"""What runs use of the private names of multiprocessing and Dask, on the installed releases."""

import ast
import asyncio
import contextlib
import multiprocessing.forkserver
import sys
from multiprocessing import current_process
from pathlib import Path

import distributed
import pytest

import designopt
from designopt.workers.private_names import exit_of_worker_first

PACKAGE = Path(designopt.__file__).parent
#: Private names of other libraries outside `workers/private_names.py`; documented by their library, or of pymoo, whose
#: operators are called without its checks.
ELSEWHERE = {
    "_exit": "os",
    "_asdict": "named tuples",
    "_fields": "named tuples",
    "_replace": "named tuples",
    "_name": "ctypes",
    "_Pointer": "ctypes",
    "_do": "pymoo",
    "_processes": "concurrent.futures",
    "_shutdown": "threading",
    "_run_exitfuncs": "atexit",
}


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (multiprocessing.forkserver._forkserver, "_forkserver_pid"),
        (multiprocessing.forkserver._forkserver, "_forkserver_address"),
        (multiprocessing.forkserver._forkserver, "_forkserver_alive_fd"),
        (multiprocessing.forkserver._forkserver, "_preload_modules"),
        (multiprocessing.forkserver._forkserver, "ensure_running"),
        (current_process(), "_config"),
        (distributed.utils, "_forkserver_preload_set"),
        (distributed.Nanny, "_on_worker_exit"),
        (distributed.SpecCluster, "_correct_state"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_installed_release_has_each_name(owner, name):
    release = f"distributed {distributed.__version__}, Python {sys.version.split()[0]}"
    assert hasattr(owner, name), f"{release}: no {name}; workers/private_names.py says what needs it"


def test_no_other_file_uses_private_names_of_those_libraries():
    used = {
        (str(path.relative_to(PACKAGE)), name)
        for path in PACKAGE.rglob("*.py")
        for name in _foreign_private_names(ast.parse(path.read_text()))
        if name not in ELSEWHERE
    }
    assert {path for path, _ in used} == {"workers/private_names.py"}, sorted(used)


class FakeNanny:
    """Records the exits that it handles itself."""

    def __init__(self):
        self.codes = []

    async def _on_worker_exit(self, code):
        self.codes.append(code)


@pytest.mark.parametrize("first_to_end", [0, 1])
def test_two_runs_on_one_cluster_receive_exits_until_each_ends(first_to_end):
    nanny, received = FakeNanny(), ([], [])

    def exits(run):
        async def handle(code):
            received[run].append(code)

        stack = contextlib.ExitStack()
        stack.enter_context(exit_of_worker_first(nanny, handle))
        return stack

    runs = [exits(0), exits(1)]
    asyncio.run(nanny._on_worker_exit(1))
    runs[first_to_end].close()
    asyncio.run(nanny._on_worker_exit(2))
    runs[1 - first_to_end].close()
    asyncio.run(nanny._on_worker_exit(3))
    assert received[first_to_end] == [1]
    assert received[1 - first_to_end] == [1, 2]
    assert nanny.codes == [1, 2, 3]


def _foreign_private_names(module):
    """Private attributes that the module reads and that neither it nor one of its own objects defines."""
    nodes = list(ast.walk(module))
    own_names = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    own_names |= {node.id for node in nodes if isinstance(node, ast.Name)}
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    own_names |= {
        node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    }
    return {
        node.attr for node in attributes if node.attr.startswith("_") and not node.attr.startswith("__")
    } - own_names
