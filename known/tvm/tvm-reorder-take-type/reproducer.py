"""tvm-reorder-take-type: Rejection of tvm-O3-products

ran with python 3.11.7, numpy 2.4.6, apache-tvm 0.27.0.post1
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['tvm', 'tvm.relax']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import tvm
from tvm import relax

TARGET = 'tvm-O3-products'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('int64', (0,)), 'x1': ('float32', (0, 1, 3))}
PARAMETERS = {'w2': ('float32', (4, 3, 5))}
OUTPUTS = [('float32', (0, 1, 5))]


def model(bb, x0, x1, w2):
    v0 = bb.emit(relax.op.take(w2, x0, axis=0))
    v1 = bb.emit(relax.op.matmul(x1, v0))
    return (v1,)


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
    target = tvm.target.Target({"kind": "llvm", "opt-level": 3})
    passes = [
        relax.transform.BindParams("main", parameters),
        relax.backend.DispatchSampling(),
        relax.backend.DispatchSortScan(),
        relax.transform.CanonicalizeBindings(),
        relax.transform.EliminateCommonSubexpr(),
        relax.transform.ReorderTakeAfterMatmul(),
        relax.transform.ExpandMatmulOfSum(),
        relax.transform.AdjustMatmulOrder(),
        relax.transform.CombineParallelMatmul(),
        relax.transform.ReorderPermuteDimsAfterConcat(),
        relax.transform.FoldBatchnormToConv2D(),
        relax.transform.RemoveRedundantReshape(),
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
        relax.transform.DataflowUseInplaceCalls(),
        relax.transform.DeadCodeElimination(),
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
    with target, tvm.transform.PassContext(opt_level=3):
        executable = tvm.compile(bb.get(), target, relax_pipeline=tvm.transform.Sequential(passes))
    machine = relax.VirtualMachine(executable, tvm.cpu())

    def run(*inputs):
        return [output.numpy() for output in machine["main"](*[tvm.runtime.tensor(x) for x in inputs])]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'rejected'  # Rejection
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([], dtype='int64').reshape((0,)),
    'x1': array([], dtype='float32').reshape((0, 1, 3)),
    'w2': array([[[-1.7382663488388062, -1.3366427421569824, -1.3611067533493042, -0.35161712765693665, -2.3125815391540527], [-0.18889719247817993, -0.9572292566299438, 0.8936001658439636, 0.9568472504615784, 1.3922582864761353], [0.767470121383667, -0.053029779344797134, 0.8597939610481262, 1.5054811239242554, -0.6535945534706116]], [[0.6103511452674866, -0.04267382621765137, 1.440016746520996, -0.8368950486183167, -0.3015466034412384], [0.3623386025428772, 0.25811025500297546, -1.6394479274749756, 0.36015522480010986, -0.11849769949913025], [-0.23974785208702087, -0.15530166029930115, 0.21897169947624207, -1.81639564037323, 1.5524665117263794]], [[-0.8614416718482971, -2.241367816925049, -0.08197449147701263, 1.4574804306030273, -0.5186010003089905], [1.551275610923767, 1.5569419860839844, -0.86273193359375, -2.465120792388916, -1.235182762145996], [1.1874321699142456, -0.8167721629142761, -1.510677456855774, -1.3376946449279785, 0.0001801442267606035]], [[-0.026108482852578163, 0.8720449209213257, 0.9890499711036682, -0.9322490096092224, -0.15675869584083557], [-1.1339346170425415, 0.07189067453145981, -1.1506078243255615, -1.200251579284668, 2.1234219074249268], [0.03238888829946518, 0.6431786417961121, 2.5380983352661133, 0.7858388423919678, -0.11414260417222977]]], dtype='float32'),
}
EXPECTED = [
    array([], dtype='float64').reshape((0, 1, 5)),
]
ALLOWED = [
    array([], dtype='float64').reshape((0, 1, 5)),
]


def wrong(output, expected, allowed, dtype, shape):
    """What is wrong with one output, or None."""
    if str(output.dtype) != dtype or output.shape != tuple(shape):
        return f"{output.dtype}{output.shape} instead of {dtype}{tuple(shape)}"
    if not shape and output.ndim == 0:
        output, expected, allowed = output.reshape(1), expected.reshape(1), allowed.reshape(1)
    if "complex" in dtype:  # the parts side by side: NaN and infinities in place, then the modulus of the difference
        got, bad, distance = output, np.zeros(output.shape, bool), np.zeros(output.shape)
        for a, b in ((output.real, expected.real), (output.imag, expected.imag)):
            bad |= (np.isnan(a) != np.isnan(b)) | ((np.isinf(a) | np.isinf(b)) & ~np.isnan(b) & (a != b))
            with np.errstate(all="ignore"):
                distance = np.hypot(distance, np.where(np.isfinite(a) & np.isfinite(b), a.astype("float64") - b, 0.0))
            if ZERO_SIGNS:
                bad |= (a == 0) & (b == 0) & (allowed == 0) & (np.signbit(a) != np.signbit(b))
        bad = ~np.isinf(allowed) & (bad | (distance > allowed))
    elif "float" in dtype:
        got = output.astype("float64")
        with np.errstate(all="ignore"):
            same = (got == expected) | (np.isnan(got) & np.isnan(expected))
            near = np.isfinite(got) & np.isfinite(expected) & (np.abs(got - expected) <= allowed)
        bad = ~np.isinf(allowed) & ~same & ~near
        if ZERO_SIGNS:
            bad |= (allowed == 0) & (got == 0) & (expected == 0) & (np.signbit(got) != np.signbit(expected))
    else:
        got, bad = output, ~np.isinf(allowed) & (output != expected)
    if not bad.any():
        return None
    at = tuple(int(i[0]) for i in np.nonzero(bad))
    detail = f"expected {expected[at]}, got {got[at]}, allowed {allowed[at]:.3g}"
    return f"{bad.sum()} of {bad.size} wrong, at {at}: {detail}"


def main():
    if SYMPTOM in ("crash", "timeout") and "--child" not in sys.argv:
        import subprocess

        try:
            code = subprocess.run([sys.executable, __file__, "--child"], timeout=SECONDS).returncode
        except subprocess.TimeoutExpired:
            print("reproduced: no result within", SECONDS, "s")
            return 1
        print("the process ended with status", code)
        return 0 if code == 0 else 77 if code == 77 else 1
    try:
        outputs = load({n: ARRAYS[n] for n in PARAMETERS})(*[ARRAYS[n] for n in INPUTS])
    except Exception as error:
        # another failure than the one looked for says nothing about it: like a framework that is not there
        why = (str(error).splitlines() or [""])[0]
        print(f"{'reproduced' if SYMPTOM == 'rejected' else 'not available'}: {type(error).__name__}: {why}")
        return 1 if SYMPTOM == "rejected" else 77
    if len(outputs) != len(OUTPUTS):
        print(f"reproduced: {len(outputs)} outputs instead of {len(OUTPUTS)}")
        return 1
    failed = 0
    for i, (dtype, shape) in enumerate(OUTPUTS):
        problem = wrong(np.asarray(outputs[i]), EXPECTED[i], ALLOWED[i], dtype, shape)
        print(f"output {i}: {problem or 'correct'}")
        failed |= problem is not None
    print("reproduced" if failed else "not reproduced")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
