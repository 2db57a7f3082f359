"""Targets that are wrong on purpose: torch-eager, or another one, with one operator spelled wrongly, or several."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from generators.ops.spec import Call, Unsupported
from harness.backends import TARGETS, Level, Target
from harness.dialects.dialect import Dialect, helper_sources

FAULT_HELPERS = tuple(
    Path(__file__).parent / "programs" / f"{name}.py"
    for name in (
        "torch_faults",
        "size_faults",
        "view_faults",
        "gradient_torch_faults",
        "mode_torch_faults",
        "narrow_torch_faults",
    )
)


@dataclass(frozen=True)
class FaultyDialect(Dialect):
    """A dialect, torch mostly, with operators spelled as `texts` say, in which `{right}` is the correct spelling,
    `{alone}` the same in terms of a0, a1, … instead of the operands, and functions of the files in FAULT_HELPERS may be
    called."""

    texts: tuple[tuple[str, str], ...] = ()

    def spelling(self, operator: str, call: Call) -> str | Unsupported:
        right, text = super().spelling(operator, call), dict(self.texts).get(operator)
        if text is None or not isinstance(right, str):
            return right
        names = [f"a{i}" for i in range(len(call.operands))]
        alone = re.sub(r"\{(\d)\}", r"a\1", right).replace("{args}", ", ".join(names))
        return text.replace("{right}", f"({right})").replace("{alone}", f"({alone})")

    @cached_property
    def _helper_sources(self) -> dict[str, str]:
        files = (*self.helpers, *FAULT_HELPERS)
        return {name: source for path in files for name, source in helper_sources(path).items()}


def planted(operator: str, text: str, of: str = "torch-eager") -> Target:
    """A target with this operator spelled wrongly."""
    return planted_all({operator: text}, of)


def planted_all(texts: Mapping[str, str], of: str = "torch-eager", name: str = "planted") -> Target:
    """A target with these operators spelled wrongly."""
    good = TARGETS[of]
    fields = {field: getattr(good.dialect, field) for field in Dialect.__dataclass_fields__}
    dialect = FaultyDialect(**fields, texts=tuple(texts.items()))
    return replace(good, name=name, dialect=dialect, level=Level(name, 0))
