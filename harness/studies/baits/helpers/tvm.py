"""TVM: the module before and after each pass; also what further Relax passes, which no level has, make of it."""

import tvm
import tvm_ffi
from tvm import relax

INITIAL = tvm.transform.PassContext.__init__
FURTHER = {
    name: getattr(relax.transform, name)
    for name in (
        *("AdjustMatmulOrder", "ExpandMatmulOfSum", "ReorderTakeAfterMatmul", "ReorderPermuteDimsAfterConcat"),
        *("Normalize", "ToNonDataflow", "RemoveUnusedParameters", "DecomposeOpsForInference"),
    )
    if hasattr(relax.transform, name)
}


@tvm.instrument.pass_instrument
class Watching:
    """Notes the passes that change the module."""

    def __init__(self, changed):
        self.changed, self.stack = changed, []

    def run_before_pass(self, module, info):
        self.stack.append(tvm_ffi.structural_hash(module))

    def run_after_pass(self, module, info):
        if self.stack.pop() != tvm_ffi.structural_hash(module):
            self.changed.add(str(info.name))


def fired_by(program, parameters, inputs):
    changed = set()

    def initial(self, *arguments, **options):
        INITIAL(self, *arguments, instruments=[Watching(changed)], **options)

    tvm.transform.PassContext.__init__ = initial
    try:
        program["load"](parameters)
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
