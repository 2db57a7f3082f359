"""TVM: the module before and after each pass; also what further Relax passes, which no level has, make of it."""

import functools

import tvm
from tvm import relax

CONTEXT = tvm.transform.PassContext
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
        self.stack.append(tvm.ir.structural_hash(module))

    def run_after_pass(self, module, info):
        if self.stack.pop() != tvm.ir.structural_hash(module):
            self.changed.add(str(info.name))


def fired_by(program, parameters, inputs):
    changed = set()
    tvm.transform.PassContext = functools.partial(CONTEXT, instruments=[Watching(changed)])
    try:
        program["load"](parameters)
    finally:
        tvm.transform.PassContext = CONTEXT
    before = bound(program, parameters)
    for name, one in FURTHER.items():
        after = one()(before)
        if tvm.ir.structural_hash(after) != tvm.ir.structural_hash(before):
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
