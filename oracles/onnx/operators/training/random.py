"""Operators that draw numbers, whose results no rule can foretell."""

from __future__ import annotations

from oracles.onnx.rule import Call, NoRule, Value


def _random(call: Call) -> list[Value]:
    raise NoRule(f"{call.operator} is random")


_NAMES = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
RULES = dict.fromkeys(_NAMES, _random)
