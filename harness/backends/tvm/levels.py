"""TVM (Relax) on the CPU, where an optimisation level is a pipeline of passes together with LLVM's own level, with
approximated functions, in mixed precision, and on CUDA by its default pipeline."""

from __future__ import annotations

from harness.backends.programs import dynamic_gradient, gradient
from harness.backends.target import passes
from harness.backends.target.arithmetic import TVM_CUDA, TVM_CUDA_REFUSES, TVM_FAST, TVM_FAST_REFUSES, TVM_MIXED
from harness.backends.target.target import Level, Target
from harness.backends.target.text import before
from harness.dialects import RELAX

REFUSES: dict[tuple[str, str], str] = {}
"""(operator, dtype) that the dialect can say and TVM has no kernel for."""

MODULES = ("tvm", "tvm.relax")
PACKAGES = {"apache-tvm": "0.25"}

# Passes before the lowering that every level shares.
BEFORE = {
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

_BUILD = """
    bb = relax.BlockBuilder()
    arguments = [
        relax.Var(name, relax.TensorType({shape}, dtype))
        for name, (dtype, shape) in [*{inputs}.items(), *PARAMETERS.items()]
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
"""

_LOAD = """
def load(parameters):{build}
    def run(*inputs):
        return [output.numpy() for output in machine["main"](*[tvm.runtime.tensor(x) for x in inputs])]

    return run
"""

_HEAD = before(_BUILD, "    target = ").format(inputs="INPUTS", shape="shape")
_CUDA = f"""
def load(parameters):{_HEAD}
    device = tvm.cuda()
    target = tvm.target.Target.from_device(device)
    passes = [relax.transform.BindParams("main", parameters), relax.get_default_pipeline(target)]
    executable = tvm.compile(bb.get(), target, relax_pipeline=tvm.transform.Sequential(passes))
    machine = relax.VirtualMachine(executable, device)

    def run(*inputs):
        return [output.numpy() for output in machine["main"](*[tvm.runtime.tensor(x, device) for x in inputs])]

    return run
"""

_SYMBOLIC = """
def compile_once(parameters):
    n = tvm.tirx.Var("n", "int64")
{build}
    def run(size, *arrays):
        return [output.numpy() for output in machine["main"](*[tvm.runtime.tensor(x) for x in arrays])]

    return run
"""


def loads(level: int, before: str) -> tuple[str, str]:
    """The texts of load and compile_once at a level."""
    static = _BUILD.format(level=level, before=before, inputs="INPUTS", shape="shape")
    dims = "[n if dim == 'n' else dim for dim in shape]"
    symbolic = _BUILD.format(level=level, before=before, inputs="ARGUMENTS", shape=dims)
    return _LOAD.format(build=static), _SYMBOLIC.format(build=symbolic.removeprefix("\n"))


TARGETS = (
    *(
        Target(
            f"tvm-O{level}",
            "tvm",
            MODULES,
            RELAX,
            load,
            PACKAGES,
            Level("tvm", level),
            refuses=REFUSES,
            refusals_file="tvm",
            sample_every=4,
            symbolic=symbolic,
            gradient=gradient.tvm(load),
            question_loads={"dynamic_gradient": dynamic_gradient.tvm(symbolic)},
            switches=passes.tvm(before),
        )
        for level, before in BEFORE.items()
        for load, symbolic in (loads(level, before),)
    ),
    Target(
        "tvm-fast",
        "tvm",
        MODULES,
        RELAX,
        loads(2, f"relax.transform.FastMathTransform(),\n        {BEFORE[2]}")[0],
        PACKAGES,
        Level("tvm-fast", 0),
        refuses={**REFUSES, **TVM_FAST_REFUSES},
        refusals_file="tvm",
        sample_every=4,
        arithmetic=TVM_FAST,
    ),
    *(
        Target(
            name,
            "tvm",
            MODULES,
            RELAX,
            loads(2, f"relax.transform.ToMixedPrecision({sums!r}),\n        {BEFORE[2]}")[0],
            PACKAGES,
            Level(name, 0),
            refuses=REFUSES,
            refusals_file="tvm",
            sample_every=4,
            arithmetic=TVM_MIXED[sums],
            opt_in=True,
        )
        for name, sums in (("tvm-mixed", "float32"), ("tvm-mixed-half", "float16"))
    ),
    Target(
        "tvm-cuda",
        "tvm-cuda",
        MODULES,
        RELAX,
        _CUDA,
        {**PACKAGES, "cuda-bindings": "12"},  # nvrtc, which compiles the kernels
        Level("tvm-cuda", 0),
        refuses={**REFUSES, **TVM_CUDA_REFUSES},
        refusals_file="tvm",
        sample_every=4,
        gradient=gradient.tvm(_CUDA),
        device="cuda",
        arithmetic=TVM_CUDA,
    ),
)
