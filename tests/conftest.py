"""What tests of all packages share; `command` beside this file is importable by its name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
