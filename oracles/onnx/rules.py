"""All rules by operator, gathered from the files of `operators`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from generators.discovery import modules_of
from oracles.onnx.rule import Rule


@cache
def rules() -> Mapping[str, Rule]:
    """By operator: `Conv`, `com.microsoft:FusedConv`. Raises ValueError for two of one operator."""
    found: dict[str, Rule] = {}
    homes: dict[str, str] = {}
    for module in modules_of("oracles.onnx.operators"):
        for name, rule in getattr(module, "RULES", {}).items():
            if name in found:
                raise ValueError(f"{name} has a rule in {homes[name]} and in {module.__name__}")
            found[name], homes[name] = rule, module.__name__
    return MappingProxyType(found)
