"""Exponentials, quotients and powers that are put together: equal in exact arithmetic, and not where one of the parts
overflows or vanishes."""

from __future__ import annotations

from generators.baits.bait import Bait, Guard, Pattern

_XLA = "xla/algsimp"


def _exponents(p: Pattern, joined: str, function: str) -> str:
    """e^x e^y, e^x / e^y, x / e^y, (e^x)^y: the exponential of a sum, a difference, a negative or a product, which is a
    number where an exponential on the way is none, or is 0."""
    x, y = p.input(2, 3), p.input(2, 3)
    if joined == "dividend":
        return p.div(x, p.apply(function, y))
    first = p.apply(function, x)
    return p.pow(first, y) if joined == "pow" else p.apply(joined, first, p.apply(function, y))


def _quotients(p: Pattern, of: str) -> str:
    """Quotients of quotients: one of products, which overflow and vanish where these do not."""
    w, x, y, z = (p.input(2, 3) for _ in range(4))
    inner = p.div(x, y)
    return {
        "by a quotient": lambda: p.div(w, inner),
        "of a quotient": lambda: p.div(inner, z),
        "of two": lambda: p.div(inner, p.div(w, z)),
        "times": lambda: p.mul(inner, z),
        "by a product": lambda: p.div(w, p.mul(x, y)),
    }[of]()


def _powers(p: Pattern, of: str, then: str) -> str:
    """Powers and roots of one value: |x|^a |x|^b, (|x|^a)^b, y / |x|^a."""
    x, y = p.input(2, 3), p.input(2, 3)
    base = p.abs(x)
    made = {
        "sqrt": lambda: p.sqrt(base),
        "rsqrt": lambda: p.rsqrt(base),
        "pow": lambda: p.pow(base, p.constant(3.0)),
        "pow of any": lambda: p.pow(base, y),
        "square": lambda: p.square(x),
        "reciprocal": lambda: p.reciprocal(x),
    }[of]()
    if then == "pow":
        return p.pow(made, p.constant(0.5))
    if then == "divisor":
        return p.div(y, made)
    return p.mul(made, {"itself": made, "base": x, "another": y}[then])


BAITS = (
    Bait("exponents-joined", (_XLA,), _exponents,
         {"joined": Guard(("mul", "div", "dividend", "pow"), ("add",)), "function": Guard(("exp",), ("exp2",))}),
    Bait("quotients-joined", (_XLA,), _quotients,
         {"of": Guard(("by a quotient", "of a quotient", "of two"), ("times", "by a product"))}),
    Bait("powers-joined", (_XLA, "torch-inductor/pow"), _powers,
         {"of": Guard(("sqrt", "rsqrt", "pow", "pow of any", "square"), ("reciprocal",)),
          "then": Guard(("itself", "pow", "divisor"), ("base", "another"))}),
)  # fmt: skip
