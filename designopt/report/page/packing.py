"""The data of a page as one compressed text: JSON of its figures, and their arrays as byte-shuffled blocks."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np


class Packing:
    """Collects the data of the figures of a page.

    The JSON refers to arrays by the offset of their first byte in a common block. There the first bytes of all numbers
    of an array precede the second ones, and so on: neighbouring numbers agree in these, and compress well.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._block = bytearray()

    def add(self, data: Any) -> int:
        """Add plain `data` from `designopt.report.page.data.as_plain`, and return its number."""
        text = json.dumps(self._without_arrays(data), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        self._texts.append(text)
        return len(self._texts) - 1

    def text(self) -> str:
        """All of it: the length of the JSON, the JSON of each entry on its own line, the block of arrays."""
        lines = "\n".join(self._texts).encode()
        return packed(struct.pack("<I", len(lines)) + lines + bytes(self._block))

    def _without_arrays(self, value: Any) -> Any:
        if isinstance(value, Mapping) and isinstance(value.get("bdata"), str):
            raw = np.frombuffer(base64.b64decode(value["bdata"]), np.uint8)
            begin = len(self._block)
            self._block += raw.reshape(-1, np.dtype(value["dtype"]).itemsize).T.tobytes()
            return {**value, "bdata": begin, "size": len(raw)}
        if isinstance(value, Mapping):
            return {k: self._without_arrays(v) for k, v in value.items()}
        return [self._without_arrays(v) for v in value] if isinstance(value, list) else value


def packed(data: bytes) -> str:
    """`data` compressed, as base85 text with a comma in place of "<", which a page must not contain."""
    return base64.b85encode(zlib.compress(data, 9)).decode().replace("<", ",")
