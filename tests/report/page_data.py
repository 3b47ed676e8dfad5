"""What the figures of a page draw, as its script unpacks it."""

import base64
import json
import re
import struct
import zlib
from typing import Any

import numpy as np


def unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b85decode(text.replace(",", "<")))


def page_data(page: str) -> list[Any]:
    """The values of designs, and the data of each figure."""
    (text,) = re.findall(r'<script type="text/plain" id="data">(.*?)</script>', page)
    data = unpacked(text)
    end = 4 + struct.unpack("<I", data[:4])[0]
    return [_with_arrays(json.loads(line), data[end:]) for line in data[4:end].decode().split("\n")]


def figures_of(page: str) -> list[Any]:
    """The data of each figure; each is drawn once."""
    numbers = [int(number) for number in re.findall(r'<figure id="[^"]+" data-source="(\d+)"', page)]
    data = page_data(page)
    assert sorted(numbers) == list(range(1, len(data)))
    return [data[number] for number in numbers]


def _with_arrays(value: Any, block: bytes) -> Any:
    if isinstance(value, dict) and "bdata" in value:
        attributes = {key: v for key, v in value.items() if key not in ("bdata", "size")}
        planes = np.frombuffer(block[value["bdata"] : value["bdata"] + value["size"]], np.uint8)
        raw = planes.reshape(np.dtype(value["dtype"]).itemsize, -1).T.tobytes()
        return {**attributes, "bdata": base64.b64encode(raw).decode()}
    if isinstance(value, dict):
        return {key: _with_arrays(v, block) for key, v in value.items()}
    return [_with_arrays(v, block) for v in value] if isinstance(value, list) else value


def rows(page: str, title: str) -> list[list[str]]:
    """The cells of the table under a heading of the page."""
    table = page[page.index(f"<h3>{title}</h3>") :]
    body = table[table.index("<tbody>") : table.index("</tbody>")]
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr.*?</tr>", body)]
