"""Canonical form of problems: equal settings and values give equal text and equal bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from designopt.plugin import InputFile, Plugin, Use


def canonical_json(data: Any) -> str:
    """One text for equal data: sorted keys, no spaces, shortest exact floats. Raises `ValueError` for NaN."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def canonical_use(use: Use[Plugin]) -> dict[str, Any]:
    """A plugin with all its settings: an omitted setting equals its default written out."""
    plugin: Plugin = use.plugin
    return {"use": plugin.name, "version": plugin.version, "settings": plain(use.all_settings)}


def plain(value: Any) -> Any:
    """Settings as JSON data; a file becomes its digest, -0.0 becomes 0.0, an infinity its name (JSON has none).

    A dataclass field with the metadata ``later`` is omitted at its default, so that identifiers older than the field
    stay valid.
    """
    if isinstance(value, InputFile):
        return {"file": value.digest}
    if is_dataclass(value) and not isinstance(value, type):
        field_values = {f: getattr(value, f.name) for f in fields(value)}
        return {f.name: plain(v) for f, v in field_values.items() if not (f.metadata.get("later") and v == f.default)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return plain(value.tolist())
    if isinstance(value, float):
        return str(value) if np.isinf(value) else value + 0.0
    return value


def tagged_bytes(value: Any) -> bytes:
    """A value with its type and length as bytes: 1, 1.0, "1" and true differ, and no two texts concatenate to the same
    bytes."""
    if isinstance(value, float):
        return b"d" + struct.pack("<d", value + 0.0)
    text = f"{type(value).__name__}:{value}".encode()
    return b"t" + struct.pack("<I", len(text)) + text
