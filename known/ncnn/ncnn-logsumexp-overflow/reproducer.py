"""ncnn-logsumexp-overflow: SpecialMismatch of ncnn

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
INPUTS = {'v3': ('float32', (1, 1, 3, 3))}
PARAMETERS = {}
OUTPUTS = [('float32', (1, 1, 3, 3))]


def model(v3):
    v4 = torch.logsumexp(v3, dim=(0, -3), keepdim=True)
    return (v4,)


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

SYMPTOM = 'special'  # SpecialMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'v3': array([[[[7855.939453125, -4237.9521484375, 5941.65283203125], [2771.09326171875, 34366.6171875, -7085.70947265625], [-13319.7568359375, -4237.9521484375, 8287.0224609375]]]], dtype='float32'),
}
EXPECTED = [
    array([[[[7855.939453125, -4237.9521484375, 5941.65283203125], [2771.09326171875, 34366.6171875, -7085.70947265625], [-13319.7568359375, -4237.9521484375, 8287.0224609375]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[0.0004686677183521491, 0.0002530188678443139, 0.00035456734302840226], [0.00016558726398869356, 0.002048827265124088, 0.000422758433457877], [0.0007943366162119263, 0.0002530188678443139, 0.0004943622681886791]]]], dtype='float64'),
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
