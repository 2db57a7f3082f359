"""tvm-dynamic-row-repeated: Rejection of tvm-O0

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

TARGET = 'tvm-O0'
# what the model takes: n changes from run to run; the first size is compiled for
ARGUMENTS = {'x0': ('int8', ('n', 4, 3))}
SIZES = (5, 6, 10, 1)
# None: changes from run to run
RESULTS = [('int8', (5, 4, 3))]
# name: (dtype, shape), of all runs in order
INPUTS = {'x0_at_5': ('int8', (5, 4, 3)), 'x0_at_6': ('int8', (6, 4, 3)), 'x0_at_10': ('int8', (10, 4, 3)), 'x0_at_1': ('int8', (1, 4, 3))}
PARAMETERS = {}
OUTPUTS = [('int8', (5, 4, 3)), ('int8', (5, 4, 3)), ('int8', (5, 4, 3)), ('int8', (5, 4, 3))]


def model(bb, x0):
    v0 = bb.emit(relax.op.strided_slice(x0, [0, 1, 2], [0, 0, 0], [1, 4, 3], list((1, 1, 1))))
    v1 = bb.emit(relax.op.broadcast_to(v0, (5, 4, 3)))
    return (v1,)


def compile_once(parameters):
    n = tvm.tirx.Var("n", "int64")
    bb = relax.BlockBuilder()
    arguments = [
        relax.Var(name, relax.TensorType([n if dim == 'n' else dim for dim in shape], dtype))
        for name, (dtype, shape) in [*ARGUMENTS.items(), *PARAMETERS.items()]
    ]
    with bb.function("main", arguments):
        with bb.dataflow():
            results = bb.emit_output(relax.Tuple(model(bb, *arguments)))
        bb.emit_func_output(results)
    target = tvm.target.Target({"kind": "llvm", "opt-level": 0})
    passes = [
        relax.transform.BindParams("main", parameters),
        relax.backend.DispatchSampling(),
        relax.backend.DispatchSortScan(),
        relax.transform.LegalizeOps(),
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
    with target, tvm.transform.PassContext(opt_level=0):
        executable = tvm.compile(bb.get(), target, relax_pipeline=tvm.transform.Sequential(passes))
    machine = relax.VirtualMachine(executable, tvm.cpu())

    def run(size, *arrays):
        return [output.numpy() for output in machine["main"](*[tvm.runtime.tensor(x) for x in arrays])]

    return run


def load(parameters):
    compiled = compile_once(parameters)

    def run(*inputs):
        outputs, count = [], len(ARGUMENTS)
        for i, size in enumerate(SIZES):
            outputs += compiled(size, *inputs[i * count : (i + 1) * count])
        return outputs

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'rejected'  # Rejection
SECONDS = 120.0
ZERO_SIGNS = True  # are the signs of zeros compared?
DATA = np.load(Path(__file__).with_name("data.npz"))
TYPES = {**INPUTS, **PARAMETERS}
ARRAYS = {name: DATA["ARRAYS_" + name].view(dtype) for name, (dtype, _) in TYPES.items()}
EXPECTED = [DATA[f"EXPECTED_{i}"] for i in range(len(OUTPUTS))]
ALLOWED = [DATA[f"ALLOWED_{i}"] for i in range(len(OUTPUTS))]


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
