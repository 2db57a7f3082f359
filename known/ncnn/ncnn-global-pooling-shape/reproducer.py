"""ncnn-global-pooling-shape: TypeMismatch of ncnn

ran with python 3.11.7, numpy 2.4.6, ncnn 1.0.20261020, pnnx 20261020, torch 2.13.0+cpu (environment ncnn)
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['torch', 'ncnn', 'pnnx']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import torch

TARGET = 'ncnn'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {}
PARAMETERS = {'w0': ('float32', (1, 16, 1, 4))}
OUTPUTS = [('float32', (1, 16, 1, 1))]


def model(w0):
    v0 = torch.asin(w0)
    v1 = torch.nn.functional.adaptive_avg_pool2d(v0, 1)
    return (v1,)


def load(parameters):
    import os
    import re
    import subprocess
    import tempfile

    import ncnn
    import pnnx

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name in PARAMETERS:
                self.register_buffer(name, torch.from_numpy(parameters[name]))

        def forward(self, *inputs):
            return model(*inputs, *[getattr(self, name) for name in PARAMETERS])

    shapes = [shape for _, shape in [*INPUTS.values(), *OUTPUTS]]
    if any(len(shape) not in range(1, 5) or 0 in shape for shape in shapes):
        raise NotImplementedError("ncnn has no tensor of rank 0 or above 4, and none without elements")
    examples = tuple(torch.zeros(shape) for _, shape in INPUTS.values())
    shapes = ",".join(f"[{','.join(map(str, shape))}]f32" for _, shape in INPUTS.values())
    net = ncnn.Net()
    net.opt.num_threads = 1
    for name in ("use_fp16_arithmetic", "use_fp16_packed", "use_fp16_storage"):
        setattr(net.opt, name, False)
    with tempfile.TemporaryDirectory() as folder:
        torch.jit.trace(Model(), examples, check_trace=False).save(f"{folder}/m.pt")
        command = [os.path.join(os.path.dirname(pnnx.__file__), "pnnx"), "m.pt", f"inputshape={shapes}", "fp16=0"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"pnnx ended with status {done.returncode}: {done.stderr[-300:]}")
        with open(f"{folder}/m.ncnn.param") as file:
            layers = [line.split()[0] for line in file.readlines()[2:]]
        unknown = [layer for layer in layers if ncnn.layer_to_index(layer) < 0]
        if unknown:
            raise NotImplementedError(f"ncnn has no layer {unknown[0]}")
        with open(f"{folder}/m_ncnn.py") as file:  # an axis that pnnx takes for the batch is not in the Mat (233: none)
            example = file.read()
        batch = {
            name: int(axis)
            for name, axis in re.findall(r"(in\d+|out\d+)\.numpy\((?:\), )?batch_index=(\d+)", example)
        }
        if net.load_param(f"{folder}/m.ncnn.param") or net.load_model(f"{folder}/m.ncnn.bin"):
            raise RuntimeError("ncnn does not load what pnnx wrote")

    ports = dict([(f"in{i}", shape) for i, (_, shape) in enumerate(INPUTS.values())])
    ports |= {f"out{i}": shape for i, (_, shape) in enumerate(OUTPUTS)}
    for name, axis in batch.items():
        if axis < 4 and ports[name][axis] > 1:
            raise NotImplementedError("ncnn has no batches: of one element only")

    def run(*inputs):
        extractor = net.create_extractor()
        for i, x in enumerate(inputs):
            extractor.input(f"in{i}", ncnn.Mat(x, batch_index=batch[f"in{i}"]).clone())
        outputs = []
        for i in range(len(OUTPUTS)):
            status, output = extractor.extract(f"out{i}")
            if status:
                raise RuntimeError(f"extract returned {status}")
            outputs.append(output.numpy(batch_index=batch[f"out{i}"]).copy())
        return outputs

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'type'  # TypeMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'w0': array([[[[6825.7978515625, 8107.46630859375, 7332.66162109375, 16872.189453125]], [[-2915.16357421875, -1544.420166015625, -197.48281860351562, 4597.32421875]], [[16655.75390625, 12010.6103515625, -1733.1695556640625, -646.4129638671875]], [[9377.26953125, -10061.2421875, 2236.50830078125, -2997.369384765625]], [[7740.12109375, 10363.931640625, 12081.5166015625, -9753.6103515625]], [[6020.71240234375, -3581.716796875, -4166.7177734375, -125.40233612060547]], [[14296.2431640625, 6964.54931640625, 5872.734375, -11241.236328125]], [[7340.1962890625, 9417.9384765625, -7378.41650390625, -17227.078125]], [[-12969.22265625, 14240.923828125, 7765.513671875, -6527.1015625]], [[1494.9967041015625, -10430.1298828125, -1439.6392822265625, -3363.852783203125]], [[1286.617431640625, -7814.13525390625, 10094.5166015625, 9190.9912109375]], [[-12640.8447265625, -15442.833984375, -4717.34716796875, -11326.583984375]], [[10427.31640625, 8823.90625, -12925.1767578125, -4073.3779296875]], [[-5517.23046875, 10489.474609375, 14767.091796875, 16439.60546875]], [[-3664.55908203125, -5548.03466796875, 2419.09765625, 4179.28076171875]], [[-17470.720703125, -7818.20654296875, 14163.603515625, 13332.197265625]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[0.0]], [[0.0]], [[0.0]], [[0.0]], [[0.0]], [[0.0]], [[0.0]], [[0.0]], [[0.0]], [[0.0]], [[0.0]], [[0.0]], [[0.0]], [[0.0]], [[0.0]], [[0.0]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[inf]], [[inf]], [[inf]], [[inf]], [[inf]], [[inf]], [[inf]], [[inf]], [[inf]], [[inf]], [[inf]], [[inf]], [[inf]], [[inf]], [[inf]], [[inf]]]], dtype='float64'),
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
