"""C3D files made for a test by the library itself."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from designopt.plugin import InputFile

Make = Callable[..., InputFile]


@pytest.fixture
def made_c3d(tmp_path: Path) -> Make:
    """Write a C3D file: `points` (n, m, 3) NaN where missing, `analog` (k, c), any other parameters."""
    ezc3d = pytest.importorskip("ezc3d")

    def make(
        points: np.ndarray,
        labels: Sequence[str],
        *,
        rate: float = 100.0,
        unit: str = "mm",
        analog: np.ndarray | None = None,
        channels: Sequence[tuple[str, str]] = (),
        parameters: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> InputFile:
        file = ezc3d.c3d()
        group = file["parameters"]
        group["POINT"]["RATE"]["value"] = [rate]
        group["POINT"]["LABELS"]["value"] = list(labels)
        group["POINT"]["UNITS"]["value"] = [unit]
        stored = np.concatenate([np.moveaxis(points, (2, 1, 0), (0, 1, 2)), np.ones((1, *points.shape[1::-1]))])
        file["data"]["points"] = stored
        missing = np.isnan(stored[:3]).any(axis=0)
        file["data"]["meta_points"]["residuals"] = np.where(missing, -1.0, 0.0)[None]
        file["data"]["meta_points"]["camera_masks"] = np.zeros((7, *points.shape[1::-1]), dtype=bool)
        if analog is not None:
            group["ANALOG"]["RATE"]["value"] = [rate * len(analog) / len(points)]
            group["ANALOG"]["LABELS"]["value"] = [name for name, _ in channels]
            group["ANALOG"]["UNITS"]["value"] = [unit for _, unit in channels]
            file["data"]["analogs"] = analog.T[None]
        for name, entries in (parameters or {}).items():
            for key, value in entries.items():
                file.add_parameter(name, key, value.astype(float) if isinstance(value, np.ndarray) else value)
        path = tmp_path / "made.c3d"
        file.write(str(path))
        return InputFile("made.c3d", path.read_bytes())

    return make
