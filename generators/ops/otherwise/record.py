"""An operator said otherwise: the same types, attributes, value and bound, in other functions of a framework
which by its documentation compute the same. They take other ways through its Python code, its gradients and
its importers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from generators.bounds.bounded import Bounded
from generators.discovery import collected
from generators.graph import TensorType
from generators.ops.attributes import OTHERWISE
from generators.ops.otherwise.relax_spellings import RELAX
from generators.ops.otherwise.unsaid import NONE
from generators.ops.slots import one_of
from generators.ops.spec import Attrs, Call, OpSpec, Spelling, Types, Unsupported, said, unsupported

_FOLDERS = ("elementwise", "shape", "linear", "index", "reduce", "nn")
SAID: Mapping[str, OpSpec] = {
    name: spec for folder in _FOLDERS for name, spec in collected(f"generators.ops.{folder}", "OPERATORS").items()
}
"""The operators that others say."""


def otherwise(
    spec: OpSpec, *, torch: Sequence[Spelling] = (), tensorflow: Sequence[Spelling] = (), jax: Sequence[Spelling] = ()
) -> OpSpec:
    """The record with an attribute first that says which of a dialect's further spellings it is. Those of Relax stand
    in a table of their own."""
    relax = RELAX.get(spec.name, ())

    def plain(attrs: Attrs) -> Attrs:
        return {name: value for name, value in attrs.items() if name != "spelling"}

    def result(operands: Types, attrs: Attrs) -> TensorType:
        return spec.result(operands, plain(attrs))

    def reference(args: Sequence[Bounded], call: Call) -> Bounded:
        return spec.reference(args, replace(call, attrs=plain(call.attrs)))

    def spelled(texts: Sequence[Spelling]) -> Spelling:
        def spell(call: Call) -> str | Unsupported:
            number = int(call.number("spelling"))
            text = texts[number] if number < len(texts) else NONE
            return said(text, call)

        return spell

    nothing = unsupported("it is said in one way")
    return replace(
        spec,
        name=f"{spec.name}{OTHERWISE}",
        base=spec.name,
        result=result,
        reference=reference,
        attrs={"spelling": one_of(*range(max(map(len, (torch, tensorflow, jax, relax))))), **spec.attrs},
        torch=spelled(torch),
        tensorflow=spelled(tensorflow),
        jax=spelled(jax),
        relax=spelled(relax),
        onnx=nothing,
    )
