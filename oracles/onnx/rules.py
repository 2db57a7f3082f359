"""All rules by operator, gathered from the files of `operators`. (Not by `generators.discovery`: programs in confined
workers import this folder, and nothing beside it.)"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from oracles.onnx import operators
from oracles.onnx.rule import Rule


@cache
def rules() -> Mapping[str, Rule]:
    """By operator: `Conv`, `com.microsoft:FusedConv`. Raises ValueError for two of one operator."""
    found: dict[str, Rule] = {}
    homes: dict[str, str] = {}
    for file in pkgutil.walk_packages(operators.__path__, f"{operators.__name__}."):
        for name, rule in getattr(import_module(file.name), "RULES", {}).items():
            if name in found:
                raise ValueError(f"{name} has a rule in {homes[name]} and in {file.name}")
            found[name], homes[name] = rule, file.name
    return MappingProxyType(found)
