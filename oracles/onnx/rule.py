"""What a rule is: one operator's results in float64, from the text of the ONNX specification of each version.

A file of rules names them in `RULES`, by operator: `"Conv": conv`, `"com.microsoft:FusedConv": fused_conv`. `rules.py`
gathers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Value = np.ndarray | list[Any] | dict[Any, Any] | None
"""A tensor (floats of every width as float64, 8 bits and fewer as ml_dtypes has them, strings as objects), a sequence,
a map, or an optional value that is absent."""


@dataclass(frozen=True)
class Call:
    """One node's evaluation. version: of the operator set of its domain that the model imports; attributes: those that
    the node states, decoded (strings as str, tensors as arrays, floats of tensors as float64), defaults are the rule's;
    inputs: None where an optional one is absent; outputs: names, "" where one is not asked for; kind: the element type
    (TensorProto.DataType) that the model infers for the first output, 0 where it infers none; kinds: the same of the
    inputs."""

    operator: str
    domain: str
    version: int
    attributes: Mapping[str, Any]
    inputs: tuple[Value, ...]
    outputs: tuple[str, ...]
    kind: int = 0
    kinds: tuple[int, ...] = ()

    def get(self, name: str, default: Any) -> Any:
        """An attribute, or its default."""
        return self.attributes.get(name, default)

    def input(self, place: int) -> Any:
        """An input; None where it is absent."""
        return self.inputs[place] if place < len(self.inputs) else None


Rule = Callable[[Call], Sequence[Value]]
"""Returns the outputs in order, at least as many as are asked for. Raises NoRule where it does not cover the call."""


class NoRule(Exception):
    """There is no rule for a node, or not for this case of it; the message says which and why."""
