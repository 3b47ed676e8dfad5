"""What the tests of dynamic sharing share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # dynamic_case.py, one_joint.py
