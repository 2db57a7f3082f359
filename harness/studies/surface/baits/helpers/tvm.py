"""TVM: the module before and after each pass; also what further Relax passes, which no level has, make of it."""

import tvm
import tvm_ffi
from tvm import relax

INITIAL = tvm.transform.PassContext.__init__
FURTHER = {
    name: getattr(relax.transform, name)
    for name in (
        *("AdjustMatmulOrder", "ExpandMatmulOfSum", "ReorderTakeAfterMatmul", "ReorderPermuteDimsAfterConcat"),
        "DecomposeOpsForInference",
    )
    if hasattr(relax.transform, name)
}


@tvm.instrument.pass_instrument
class Watching:
    """Notes the passes that change the module; `stack` has those that are under way."""

    def __init__(self, changed, stack):
        self.changed, self.stack = changed, stack

    def run_before_pass(self, module, info):
        self.stack.append((str(info.name), tvm_ffi.structural_hash(module)))

    def run_after_pass(self, module, info):
        name, before = self.stack.pop()
        if before != tvm_ffi.structural_hash(module):
            self.changed.add(name)


def fired_by(program, parameters, inputs):
    changed, stack = set(), []

    def initial(self, *arguments, **options):
        INITIAL(self, *arguments, instruments=[Watching(changed, stack)], **options)

    tvm.transform.PassContext.__init__ = initial
    try:
        program["load"](parameters)
    except Exception:
        if not stack:
            raise
        changed.add(stack[-1][0])  # one that fails has found something to do
    finally:
        tvm.transform.PassContext.__init__ = INITIAL
    before = bound(program, parameters)
    for name, one in FURTHER.items():
        after = one()(before)
        if tvm_ffi.structural_hash(after) != tvm_ffi.structural_hash(before):
            changed.add(name)
    return changed


def bound(program, parameters):
    """The module as it is built, with its parameters as constants."""
    bb = relax.BlockBuilder()
    types = [*program["INPUTS"].items(), *program["PARAMETERS"].items()]
    arguments = [relax.Var(name, relax.TensorType(shape, dtype)) for name, (dtype, shape) in types]
    with bb.function("main", arguments):
        with bb.dataflow():
            results = bb.emit_output(relax.Tuple(program["model"](bb, *arguments)))
        bb.emit_func_output(results)
    return relax.transform.BindParams("main", parameters)(bb.get())


def listed():
    return FURTHER
