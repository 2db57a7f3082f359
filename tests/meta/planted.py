"""Targets that are wrong on purpose: torch-eager with one operator spelled wrongly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from generators.ops.spec import Call, Unsupported
from harness.backends import TARGETS, Level, Target
from harness.dialects.base import Dialect, helper_sources

FAULT_HELPERS = Path(__file__).with_name("torch_faults.py")


@dataclass(frozen=True)
class FaultyDialect(Dialect):
    """torch, with one operator spelled as `text`, in which `{right}` is the correct spelling and functions of
    `torch_faults.py` may be called."""

    operator: str = ""
    text: str = ""

    def spelling(self, operator: str, call: Call) -> str | Unsupported:
        right = super().spelling(operator, call)
        if operator != self.operator or not isinstance(right, str):
            return right
        return self.text.replace("{right}", f"({right})")

    @cached_property
    def _helper_sources(self) -> dict[str, str]:
        return {**helper_sources(self.helpers), **helper_sources(FAULT_HELPERS)}


def planted(operator: str, text: str) -> Target:
    """torch-eager with this operator spelled wrongly."""
    good = TARGETS["torch-eager"]
    fields = {name: getattr(good.dialect, name) for name in Dialect.__dataclass_fields__}
    dialect = FaultyDialect(**fields, operator=operator, text=text)
    return Target("planted", "torch", good.modules, dialect, good.load, good.packages, Level("planted", 0))
