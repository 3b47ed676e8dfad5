"""The heap of a worker keeps what evaluations free."""

import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np
from designopt.workers.remote.heap import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        np.ones(2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

usual = faults()
if not keep_freed_memory():
    print("no such setting")
else:
    faults()
    print(usual, faults())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of the C library of Linux")
def test_the_pages_of_an_array_are_asked_for_once():
    """Arrays of 8 MiB: the first takes 2 048 pages of 4 KiB, or few large ones; later ones take none."""
    process = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True, timeout=120)
    if "no such setting" in process.stdout:
        pytest.skip("this C library has no mallopt")
    usual, with_setting = (int(count) for count in process.stdout.split())
    assert with_setting < max(20, usual / 10)
