"""Nodes of operators that onnx's own cases leave out or hardly touch, for ONNX Runtime, on random inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

Given = tuple[Any, ...]


@dataclass(frozen=True)
class RuntimeNode:
    """One node; operator: with its domain; None: an input that is absent."""

    operator: str
    version: int
    inputs: Given
    attributes: dict[str, Any]
    outputs: int = 1

    @property
    def label(self) -> str:
        stated = ",".join(f"{key}={value}" for key, value in self.attributes.items() if np.ndim(value) == 0)
        return f"{self.operator}-{self.version}-{len(self.inputs)}-{stated}"[:120]


def drawn(operator: str, *shape: int) -> np.ndarray:
    """Standard normal float32, by operator and shape."""
    seed = crc32(f"{operator}{shape}".encode())
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def bytes_of(name: str, *shape: int, kind: Any = np.uint8, bits: int = 8) -> np.ndarray:
    """Signed ones have 7 bits: without VNNI kernels saturate the sum of two products with more."""
    bits = min(bits, 7) if kind == np.int8 else bits
    low = 0 if kind == np.uint8 else -(1 << (bits - 1))
    seed = crc32(f"{name}{shape}".encode())
    return np.random.default_rng(seed).integers(low, low + (1 << bits), shape).astype(kind)


def scalar(number: float, kind: Any = np.float32) -> np.ndarray:
    return np.array(number, kind)


def node(operator: str, version: int, *inputs: Any, outputs: int = 1, **attributes: Any) -> RuntimeNode:
    return RuntimeNode(operator, version, inputs, attributes, outputs)


def ms(operator: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> RuntimeNode:
    return node(f"com.microsoft:{operator}", 1, *inputs, outputs=outputs, **attributes)


def ml(operator: str, version: int, *inputs: Any, outputs: int = 1, **attributes: Any) -> RuntimeNode:
    return node(f"ai.onnx.ml:{operator}", version, *inputs, outputs=outputs, **attributes)
