"""tvm-combine-parallel-biases: Rejection of tvm-O3

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
INPUTS = {'x0': ('float32', (2, 3)), 'w1': ('float32', (3, 4)), 'w2': ('float32', (1, 4)), 'w3': ('float32', (3, 5)), 'w4': ('float32', (2, 5))}
PARAMETERS = {}
OUTPUTS = [('float32', (2, 4)), ('float32', (2, 5))]


def model(bb, x0, w1, w2, w3, w4):
    v0 = bb.emit(relax.op.matmul(x0, w1))
    v1 = bb.emit(relax.op.add(v0, w2))
    v2 = bb.emit(relax.op.matmul(x0, w3))
    v3 = bb.emit(relax.op.add(v2, w4))
    return (v1, v3,)


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
    'x0': array([[-0.5750673413276672, 0.09206373989582062, -2.11177134513855], [-1.397045612335205, -0.756531834602356, -0.2222616821527481]], dtype='float32'),
    'w1': array([[-1.006995677947998, 1.6023285388946533, 1.9217212200164795, -0.016221143305301666], [-0.9366594552993774, -0.5908790230751038, -0.09474668651819229, -1.0893208980560303], [2.1652514934539795, 0.2523127496242523, 1.0158472061157227, 0.5500287413597107]], dtype='float32'),
    'w2': array([[-1.0512243509292603, -0.361987441778183, 0.8116258978843689, -1.2512308359146118]], dtype='float32'),
    'w3': array([[-0.5667637586593628, -1.0565742254257202, 1.062079906463623, -1.1293522119522095, -1.7794053554534912], [0.6549562215805054, 0.8412511944770813, -0.949110209941864, -0.5653303265571594, 2.7797272205352783], [-1.0174384117126465, -0.5057891011238098, 1.1787562370300293, 0.7454060912132263, 1.6118038892745972]], dtype='float32'),
    'w4': array([[-1.0222570896148682, -1.4748154878616333, -0.46934202313423157, -0.42633527517318726, -0.9176873564720154], [-0.2914057672023773, -0.2464810162782669, -2.0592727661132812, -1.1930267810821533, -0.20972032845020294]], dtype='float32'),
}
EXPECTED = [
    array([[-5.13088245504146, -1.8706596219336733, -2.447452970101308, -2.5037244769885088], [0.5829547994849555, -2.209574161365454, -2.0272113249384587, -0.5267135346428331]], dtype='float64'),
    array([[1.5125652407630295, 0.27834550446130724, -3.6567517709857205, -1.4030553492785112, -3.0422586331074335], [0.23103139604084078, 0.7055855963703381, -3.087007095110863, 0.6467449487934198, -0.1850042616243126]], dtype='float64'),
]
ALLOWED = [
    array([[1.2424231522698885e-06, 3.812716595598561e-07, 7.286483853872819e-07, 3.7653300744663497e-07], [4.990701851661436e-07, 6.219415999967441e-07, 6.540893271471294e-07, 2.0466851266495765e-07]], dtype='float64'),
    array([[5.434175498176039e-07, 3.3008035616472633e-07, 7.879127714534826e-07, 4.905425461517749e-07, 1.0187098358244522e-06], [2.843925415476075e-07, 4.3990531563996026e-07, 6.245615458046606e-07, 4.267759673572833e-07, 8.956385499075923e-07]], dtype='float64'),
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
