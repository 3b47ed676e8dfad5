"""The single faults of the mutation run, as listed in ``faults/AREA.toml``.

Each ``[[fault]]`` has a `name` (what the code does with it), `file`, the text `old` that it replaces by `new`, and
`tests`: the test files or node ids that fail with it. `before` is "killed" or "survived": the result with these files
as of commit 95e39a4e, where it is known.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FAULTS = Path(__file__).parent / "faults"


@dataclass(frozen=True)
class Fault:
    """A single fault: in `file`, the text `old` becomes `new`; one of `tests` fails. Paths from the root."""

    area: str
    name: str
    file: str
    old: str
    new: str
    tests: list[str]
    before: str = ""

    def code(self, text: str) -> str:
        """The content `text` of the file with the fault. Raises `ValueError` unless `old` occurs exactly once."""
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"{self.area}: {self.name}: its old text occurs {count} times in {self.file}, not once")
        return text.replace(self.old, self.new)


def listed_faults(folder: Path = FAULTS) -> list[Fault]:
    """All faults, by area."""
    files = sorted(folder.glob("*.toml"))
    return [Fault(file.stem, **table) for file in files for table in tomllib.loads(file.read_text("utf-8"))["fault"]]
