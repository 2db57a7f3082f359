"""Targets with many faults at once, each in an operator of its own, under their own names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from planted.faults.reach import REACH_FAULTS, ReachFault

from generators.ops.spec import Call, Unsupported
from harness.backends import Target
from harness.dialects.dialect import Dialect, extended, helper_sources

FUNCTIONS = Path(__file__).parents[1] / "programs" / "reach_faults.py"
HELD = {"torch": "torch.Tensor.detach", "tensorflow": "tf.stop_gradient", "jax": "jax.lax.stop_gradient"}
FORMS = {
    "relax": "Space(bb).run({f}, [{args}]{given})",
    "onnx": "Space(g).run({f}, [{args}], [{types}]{given})",
}
PLAIN = "{f}(Space, {args}{given})"


@dataclass(frozen=True)
class RiddledDialect(Dialect):
    """A dialect with some operators wrong."""

    faults: Mapping[str, ReachFault] = field(default_factory=dict)

    def spelling(self, operator: str, call: Call) -> str | Unsupported:
        right, fault = super().spelling(operator, call), self.faults.get(operator)
        if fault is None or not isinstance(right, str) or call.result.dtype not in fault.dtypes:
            return right
        if any(one.dtype not in fault.dtypes for one in call.operands[: fault.operands]):
            return right
        given = {name: repr(value) for name, value in fault.given.items()}
        if fault.backward:
            given["held"] = HELD[self.name]
        keywords = "".join(
            f", {name}={text}".replace("=inf", "=float('inf')").replace("=-inf", "=-float('inf')")
            for name, text in given.items()
        )
        operands = [f"{{{place}}}" for place in range(fault.operands)]
        types = ", ".join(f"({t.dtype!r}, {t.shape!r})" for t in (call.result, *call.operands[: fault.operands]))
        text = FORMS.get(self.name, PLAIN).replace("{f}", fault.function).replace("{given}", keywords)
        return text.replace("{types}", types).replace("{args}", ", ".join((right, *operands)))

    @cached_property
    def _helper_sources(self) -> dict[str, str]:
        return {name: text for path in (*self.helpers, FUNCTIONS) for name, text in helper_sources(path).items()}


def riddled(target: Target, faults: Sequence[ReachFault] = REACH_FAULTS) -> Target:
    """The target with those of the faults that are its own."""
    own = {fault.operator: fault for fault in faults if fault.target == target.name}
    return replace(target, dialect=extended(target.dialect, RiddledDialect, faults=own)) if own else target
