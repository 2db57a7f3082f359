"""Values of ONNX (tensors, sequences, maps, strings, absent ones) as two arrays of bytes, in which they travel between
processes. Its text is a part of printed programs, too: it imports the standard library, numpy and ml_dtypes only."""

import json
from typing import Any

import ml_dtypes
import numpy as np


def packed(values: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """What describes them, in JSON, and the bytes of all tensors."""
    buffers: list[bytes] = []
    text = json.dumps([_described(value, buffers) for value in values])
    return np.frombuffer(text.encode(), np.uint8), np.frombuffer(b"".join(buffers), np.uint8)


def unpacked(header: np.ndarray, data: np.ndarray) -> list[Any]:
    """The values again."""
    content, start, found = data.tobytes(), 0, []
    for item in json.loads(header.tobytes()):
        value, start = _restored(item, content, start)
        found.append(value)
    return found


def _described(value: Any, buffers: list[bytes]) -> Any:
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return {"items": [_described(item, buffers) for item in value]}
    if isinstance(value, dict):
        return {"keys": list(value), "items": [_described(item, buffers) for item in value.values()]}
    array = np.asarray(value)
    if array.dtype.kind in "OUST":
        texts = [item.decode() if isinstance(item, bytes) else str(item) for item in array.ravel().tolist()]
        return {"texts": texts, "shape": list(array.shape)}
    buffers.append(np.ascontiguousarray(array).tobytes())
    return {"dtype": str(array.dtype), "shape": list(array.shape)}


def _restored(item: Any, content: bytes, start: int) -> tuple[Any, int]:
    if item is None:
        return None, start
    if "texts" in item:
        return np.array(item["texts"], object).reshape(item["shape"]), start
    if "items" in item:
        values = []
        for one in item["items"]:
            value, start = _restored(one, content, start)
            values.append(value)
        return (dict(zip(item["keys"], values, strict=True)) if "keys" in item else values), start
    dtype = np.dtype(getattr(ml_dtypes, item["dtype"], item["dtype"]))
    count = int(np.prod(item["shape"], dtype=np.int64))
    array = np.frombuffer(content, dtype, count, start).reshape(item["shape"])
    return array.copy(), start + count * dtype.itemsize
