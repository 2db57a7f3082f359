"""tvm-combine-parallel-empty: Rejection of tvm-O3

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

TARGET = 'tvm-O3'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (4, 3)), 'w1': ('float32', (3, 0)), 'w2': ('float32', (3, 5))}
PARAMETERS = {}
OUTPUTS = [('float32', (4, 0)), ('float32', (4, 5))]


def model(bb, x0, w1, w2):
    v0 = bb.emit(relax.op.matmul(x0, w1))
    v1 = bb.emit(relax.op.matmul(x0, w2))
    return (v0, v1,)


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
    'x0': array([[1.5746411085128784, 0.7432833909988403, -0.9698888063430786], [-0.21200445294380188, -0.28672993183135986, 2.3624188899993896], [-0.9432255029678345, 1.3757948875427246, 0.12317992001771927], [1.0218538045883179, -0.0027781217359006405, 0.39277011156082153]], dtype='float32'),
    'w1': array([[], [], []], dtype='float32').reshape((3, 0)),
    'w2': array([[0.9091452360153198, 0.751396656036377, -0.025538381189107895, 0.65250563621521, -0.6509536504745483], [-1.829492449760437, 1.6785105466842651, 0.47661399841308594, -2.066348075866699, -1.0589356422424316], [-0.6195720434188843, 0.341558575630188, 1.326922059059143, 0.30765286087989807, -0.4329802393913269]], dtype='float32'),
}
EXPECTED = [
    array([[], [], [], []], dtype='float64').reshape((4, 0)),
    array([[0.6726621000087363, 2.0995152351465833, -0.9729213678984192, -0.8068090725001476, -1.3921649652358425], [-1.131861292090388, 0.1663257794742492, 3.0035004891364165, 1.1809546725895927, -0.5812470794599314], [-3.450854166443338, 1.6426228980239879, 0.8432617078947531, -3.420434420773181, -0.8962166297137819], [0.6907466904723429, 0.8973084249468537, 0.4937547414794321, 0.7933427818751384, -0.8322993091528004]], dtype='float64'),
]
ALLOWED = [
    array([[], [], [], []], dtype='float64').reshape((4, 0)),
    array([[6.065950181103107e-07, 4.938953962296238e-07, 3.006649212866326e-07, 5.117178825648002e-07, 3.991217512931786e-07], [3.8999355679037253e-07, 2.5883017623342783e-07, 5.859410556108433e-07, 2.6064331232856597e-07, 2.618755979992256e-07], [6.170608849963493e-07, 5.471878491912379e-07, 1.5078696191133675e-07, 6.251743114580683e-07, 3.798381785722526e-07], [2.105436791637824e-07, 1.6211892628352138e-07, 9.809660469505048e-08, 1.4186076127172e-07, 1.4987882045790855e-07]], dtype='float64'),
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
