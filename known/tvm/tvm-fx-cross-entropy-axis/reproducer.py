"""tvm-fx-cross-entropy-axis: ValueMismatch of tvm-fx

ran with python 3.11.7, numpy 2.4.6, apache-tvm 0.27.0.post1, torch 2.13.0+cpu
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['torch', 'torch.fx', 'tvm', 'tvm.relax']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import torch

TARGET = 'tvm-fx'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (5, 2, 6)), 'x1': ('int64', (5, 6))}
PARAMETERS = {}
OUTPUTS = [('float32', ())]


def model(x0, x1):
    v0 = torch.nn.functional.cross_entropy(x0, x1, reduction='mean')
    return (v0,)


def load(parameters):
    import tvm
    from tvm.relax.frontend.torch import from_fx

    traced = torch.fx.symbolic_trace(model)
    given = traced.graph.find_nodes(op="placeholder")
    for node, name in zip(given[len(INPUTS) :], PARAMETERS):  # model takes them last; a module has them as buffers
        traced.register_buffer(f"buffer_{name}", torch.from_numpy(parameters[name]))
        with traced.graph.inserting_before(node):
            node.replace_all_uses_with(traced.graph.get_attr(f"buffer_{name}"))
        traced.graph.erase_node(node)
    traced.recompile()
    module = from_fx(traced, [(shape, dtype) for dtype, shape in INPUTS.values()])
    machine = tvm.relax.VirtualMachine(tvm.compile(module, tvm.target.Target("llvm")), tvm.cpu())

    def run(*inputs):
        results = machine["main"](*[tvm.runtime.tensor(x) for x in inputs])
        return [result.numpy() if hasattr(result, "numpy") else np.asarray(result) for result in results]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[-0.02980147860944271, -0.8047055006027222, 0.11150426417589188, 0.34330394864082336, 0.05278558284044266, 0.20576971769332886], [-0.16270126402378082, 0.5565822720527649, -1.3862134218215942, -0.4601098299026489, -0.23489947617053986, -0.34079819917678833]], [[1.0952098369598389, -0.5386739373207092, -2.120720863342285, -0.47826725244522095, 0.366109699010849, -1.632284164428711], [0.8950235247612, 0.5966576933860779, -1.2141321897506714, 1.4232364892959595, 0.20592030882835388, 1.1717653274536133]], [[1.2156404256820679, 0.7730029821395874, 1.7734436988830566, 0.6821606755256653, -0.5242127180099487, -0.03217381238937378], [0.08987158536911011, 1.3991084098815918, -0.036464158445596695, 0.5672140121459961, 0.4479496479034424, 0.21609783172607422]], [[0.043513137847185135, -0.7785384654998779, -0.7919997572898865, 0.8664707541465759, -1.2006943225860596, -0.8558328747749329], [0.07450543344020844, 0.5334586501121521, -0.7922094464302063, -0.6933671236038208, -0.6182262301445007, -0.5321340560913086]], [[-0.06974131613969803, -0.6869701743125916, 0.5338921546936035, -0.5411040186882019, -1.1214923858642578, 0.6388751864433289], [-0.08661697804927826, -1.2789021730422974, -0.3288045823574066, 1.1081770658493042, -0.744530200958252, 0.6425423622131348]]], dtype='float32'),
    'x1': array([[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 1, 1], [1, 1, 1, 0, 0, 0], [1, 1, 0, 1, 0, 1]], dtype='int64'),
}
EXPECTED = [
    array(0.7953234235118752, dtype='float64'),
]
ALLOWED = [
    array(2.3779434157540895e-06, dtype='float64'),
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
