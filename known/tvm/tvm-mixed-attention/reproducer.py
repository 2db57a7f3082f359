"""tvm-mixed-attention: ValueMismatch of tvm-mixed

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

TARGET = 'tvm-mixed'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (1, 2, 3, 4)), 'x1': ('float32', (1, 2, 3, 4))}
PARAMETERS = {}
OUTPUTS = [('float32', (1, 2, 3, 4))]


def attention(bb, q, k, v, scale, causal=False, bias=None):
    """Over (batch, heads, length, features); relax has the length before the heads and as many heads of keys and
    values as of queries."""
    groups = int(q.ty.shape[1]) // int(k.ty.shape[1])
    k, v = (x if groups == 1 else relax.op.repeat(x, groups, axis=1) for x in (k, v))
    q, k, v = (bb.emit(relax.op.permute_dims(x, [0, 2, 1, 3])) for x in (q, k, v))
    if bias is not None and len(bias.ty.shape) == 2:
        bias = bb.emit(relax.op.expand_dims(bias, [0, 1]))
    y = relax.op.nn.attention(q, k, v, bias, scale, "TopLeft" if causal else None)
    return relax.op.permute_dims(y, [0, 2, 1, 3])


def model(bb, x0, x1):
    v0 = bb.emit(attention(bb, x0, x1, x0, None, causal=True))
    return (v0,)


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
    target = tvm.target.Target({"kind": "llvm", "opt-level": 2})
    passes = [
        relax.transform.BindParams("main", parameters),
        relax.backend.DispatchSampling(),
        relax.backend.DispatchSortScan(),
        relax.transform.ToMixedPrecision('float32'),
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
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
    with target, tvm.transform.PassContext(opt_level=2):
        executable = tvm.compile(bb.get(), target, relax_pipeline=tvm.transform.Sequential(passes))
    machine = relax.VirtualMachine(executable, tvm.cpu())

    def run(*inputs):
        return [output.numpy() for output in machine["main"](*[tvm.runtime.tensor(x) for x in inputs])]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[[0.9351787567138672, 0.5440484881401062, 0.1109812781214714, 0.8565970659255981], [0.38215720653533936, 0.9499039053916931, 0.38555070757865906, 0.5811581015586853], [0.920415461063385, 0.008202718570828438, 0.9726734161376953, 0.2335279881954193]], [[0.0796605795621872, 0.8396869897842407, 0.37924280762672424, 0.8424622416496277], [0.3825950026512146, 0.08860911428928375, 0.8842851519584656, 0.8619669675827026], [0.8965654969215393, 0.23744748532772064, 0.5875193476676941, 0.40077102184295654]]]], dtype='float32'),
    'x1': array([[[[0.5838466286659241, 0.6594699025154114, 0.20436564087867737, 0.19927804172039032], [0.9072504043579102, 0.07901781052350998, 0.5259082317352295, 0.8755437731742859], [0.8965051174163818, 0.22082501649856567, 0.4049561619758606, 0.980670690536499]], [[0.8545293211936951, 0.44663599133491516, 0.0006540798931382596, 0.8521721959114075], [0.7441748976707458, 0.23555563390254974, 0.915027379989624, 0.5124871730804443], [0.629642128944397, 0.8089720606803894, 0.9319993853569031, 0.16355828940868378]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[0.9351787567138672, 0.5440484881401062, 0.1109812781214714, 0.8565970659255981], [0.6525024224395259, 0.7515010215124962, 0.2513271286542391, 0.715806753616024], [0.7198151405680142, 0.5047806030083106, 0.5262832083281591, 0.5270942262610634]], [[0.0796605795621872, 0.8396869897842407, 0.37924280762672424, 0.8424622416496277], [0.24827745556149527, 0.42162817789102036, 0.6603553384517813, 0.8533188023551479], [0.46116669370527746, 0.37224861956876604, 0.6274366131823907, 0.7008517974203489]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[0.025027381904657392, 0.014738276091963879, 0.0034417469283567013, 0.02290889690599406], [0.01759290190824689, 0.020186405005838137, 0.007129175611243616, 0.019203543411554197], [0.0206813580724385, 0.01478818044982519, 0.015623884767379194, 0.01517004345254309]], [[0.002657673453345975, 0.022892232291811487, 0.010703247190986254, 0.023081334128140545], [0.007739228608600086, 0.012164964923784658, 0.019619584337256264, 0.024919299732693717], [0.013706206863045824, 0.01095340659324448, 0.01850797270090853, 0.02053184646338146]]]], dtype='float64'),
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
