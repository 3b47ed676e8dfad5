"""Tests of this folder, and benchmarks, share the problems in its modules (`benchmark_problems`, `chains`)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
