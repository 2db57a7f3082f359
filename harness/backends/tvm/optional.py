"""TVM with optional passes: those that reorder products, that take composite operators apart, that lift what is
computed of parameters alone out of the function; and with structures of Relax around each value, which passes have to
see through. For globs that name them."""

from __future__ import annotations

from dataclasses import replace

from harness.backends.target.arithmetic import TVM_REORDERED
from harness.backends.target.target import Target
from harness.backends.target.text import swapped
from harness.backends.tvm.levels import BEFORE
from harness.backends.tvm.variants import variant

_LEGALIZE = "relax.transform.LegalizeOps()"
_PARALLEL = """relax.transform.FuseTransposeMatmul(),
        relax.transform.CombineParallelMatmul()"""
_REORDERED = """relax.transform.ReorderTakeAfterMatmul(),
        relax.transform.ExpandMatmulOfSum(),
        relax.transform.AdjustMatmulOrder(),
        relax.transform.CombineParallelMatmul(),
        relax.transform.ReorderPermuteDimsAfterConcat()"""
_PRODUCTS = swapped(BEFORE[3], (_PARALLEL, _REORDERED))
_DECOMPOSED = swapped(BEFORE[3], (_LEGALIZE, f"relax.transform.DecomposeOpsForInference(),\n        {_LEGALIZE}"))

_BOUND = 'relax.transform.BindParams("main", parameters)'
_LIFT = "relax.transform.LiftTransformParams()"
_GIVEN = "    machine = relax.VirtualMachine(executable, tvm.cpu())\n"
_LIFTED = f"""{_GIVEN}    given = [tvm.runtime.tensor(parameters[name]) for name in PARAMETERS]
    lifted = machine["main_transform_params"](given)
"""
_CALLED = "[tvm.runtime.tensor(x) for x in inputs]"


def _lifted() -> Target:
    """Parameters are arguments, and what is computed of them alone is a function of its own, which is called once."""
    return variant(
        "tvm-O3-lifted",
        (_BOUND, _LIFT),
        ('bb.function("main", arguments)', 'bb.function("main", arguments, {"num_input": len(INPUTS)})'),
        (_GIVEN, _LIFTED),
        (f"*{_CALLED}", f"*{_CALLED}, *lifted"),
        symbolic=False,
    )


_STRUCTURED = '''
class Structured:
    """A builder that sends each tensor through structures of Relax: a cast to its own type and to one with unknown
    sizes, a tuple, and a function of its own."""

    def __init__(self, builder):
        self.builder = builder

    def __getattr__(self, name):
        return getattr(self.builder, name)

    def emit(self, expression):
        value = self.builder.emit(expression)
        type_ = value.ty
        if not isinstance(type_, relax.TensorType) or type_.shape is None or not type_.ndim:
            return value
        value = self.builder.match_cast(value, type_)
        sizes = [tvm.tirx.Var(f"n{axis}", "int64") for axis in range(type_.ndim)]
        loose = self.builder.match_cast(value, relax.TensorType(sizes, type_.dtype))
        pair = self.builder.emit(relax.Tuple([value, loose]))
        value = self.builder.match_cast(self.builder.emit(relax.TupleGetItem(pair, 1)), type_)
        return self.called(value, type_)

    def called(self, value, type_):
        """A function that turns a tensor and turns it back."""
        inner = relax.BlockBuilder()
        x = relax.Var("x", type_)
        with inner.function("same", [x], private=True):
            with inner.dataflow():
                turned = inner.emit(relax.op.permute_dims(x))
                result = inner.emit_output(relax.op.permute_dims(turned))
            inner.emit_func_output(result)
        function = self.builder.add_func(inner.get()["same"], "same")
        return self.builder.emit(relax.Call(function, [value]))


'''


def _structured(level: int, before: str) -> Target:
    target = variant(
        f"tvm-O{level}-structured",
        ("model(bb, *arguments)", "model(Structured(bb), *arguments)"),
        before=before,
        level=level,
        symbolic=False,
    )
    return replace(target, load=_STRUCTURED + target.load)


TARGETS = (
    replace(variant("tvm-O3-products", before=_PRODUCTS, symbolic=False), arithmetic=TVM_REORDERED),
    variant("tvm-O3-decomposed", before=_DECOMPOSED),
    _lifted(),
    _structured(0, BEFORE[0]),
    _structured(3, BEFORE[3]),
)
