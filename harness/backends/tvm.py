"""TVM (Relax) on the CPU. An optimisation level is a pipeline of passes together with LLVM's own level."""

from __future__ import annotations

from harness.backends.target import Level, Target
from harness.dialects import RELAX

REFUSES: dict[tuple[str, str], str] = {}
"""(operator, dtype) that the dialect can say and TVM has no kernel for."""

_MODULES = ("tvm", "tvm.relax")
_PACKAGES = {"apache-tvm": "0.25"}

# Passes before the lowering that every level shares.
_BEFORE = {
    0: "relax.transform.LegalizeOps()",
    1: """relax.transform.CanonicalizeBindings(),
        relax.transform.EliminateCommonSubexpr(),
        relax.transform.LegalizeOps(),
        relax.transform.FoldConstant(),
        relax.transform.DeadCodeElimination()""",
    2: """relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR()""",
    3: """relax.transform.CanonicalizeBindings(),
        relax.transform.EliminateCommonSubexpr(),
        relax.transform.FuseTransposeMatmul(),
        relax.transform.CombineParallelMatmul(),
        relax.transform.FoldBatchnormToConv2D(),
        relax.transform.RemoveRedundantReshape(),
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
        relax.transform.DataflowUseInplaceCalls(),
        relax.transform.DeadCodeElimination()""",
}

_LOAD = """
def load(parameters):
    bb = relax.BlockBuilder()
    arguments = [
        relax.Var(name, relax.TensorType(shape, dtype))
        for name, (dtype, shape) in [*INPUTS.items(), *PARAMETERS.items()]
    ]
    with bb.function("main", arguments):
        with bb.dataflow():
            results = bb.emit_output(relax.Tuple(model(bb, *arguments)))
        bb.emit_func_output(results)
    target = tvm.target.Target({{"kind": "llvm", "opt-level": {level}}})
    passes = [
        relax.transform.BindParams("main", parameters),
        relax.backend.DispatchSampling(),
        relax.backend.DispatchSortScan(),
        {before},
        relax.transform.RewriteDataflowReshape(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
        relax.transform.StaticPlanBlockMemory(),
        relax.transform.LowerAllocTensor(),
        relax.transform.KillAfterLastUse(),
        relax.transform.LowerRuntimeBuiltin(),
        relax.transform.ComputePrimValue(),
        relax.transform.VMShapeLower(),
        relax.transform.AttachGlobalSymbol(),
    ]
    with target, tvm.transform.PassContext(opt_level={level}):
        executable = tvm.compile(bb.get(), target, relax_pipeline=tvm.transform.Sequential(passes))
    machine = relax.VirtualMachine(executable, tvm.cpu())

    def run(*inputs):
        return [output.numpy() for output in machine["main"](*[tvm.runtime.tensor(x) for x in inputs])]

    return run
"""

TARGETS = tuple(
    Target(
        f"tvm-O{level}",
        "tvm",
        _MODULES,
        RELAX,
        _LOAD.format(level=level, before=before),
        _PACKAGES,
        Level("tvm", level),
        refuses=REFUSES,
        stride=4,
    )
    for level, before in _BEFORE.items()
)
