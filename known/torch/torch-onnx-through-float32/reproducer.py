"""torch-onnx-through-float32: ValueMismatch of torch/torch-onnx/ort-all

ran with python 3.11.7, numpy 2.4.6, torch 2.13.0+cpu, onnx 1.23.2, onnxscript 0.7.2, onnxruntime 1.31.1
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['torch', 'onnxscript', 'onnxruntime']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import torch

TARGET = 'torch/torch-onnx/ort-all'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float64', (1, 37))}
PARAMETERS = {}
OUTPUTS = [('float64', (1, 37))]


def model(x0):
    v0 = torch.nn.functional.celu(x0, alpha=1.0)
    return (v0,)


TRUST = False


def write(parameters, path):
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, array in parameters.items():
                self.register_buffer(name, torch.from_numpy(array))

        def forward(self, *inputs):
            return model(*inputs, *[getattr(self, name) for name in PARAMETERS])

    examples = tuple(torch.zeros(shape, dtype=getattr(torch, dtype)) for dtype, shape in INPUTS.values())
    torch.export.save(torch.export.export(Module(), examples), path)


def exported_program(path):
    import os
    import pickle

    import torch
    import torch.ao.quantization.fx._decomposed  # registers the operators of quantised programs

    # torch.export.load unpickles whatever does not load as plain tensors, unless told so
    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = str(int(not TRUST))
    try:
        return torch.export.load(path)
    except pickle.UnpicklingError as error:
        raise ValueError("it holds a pickle of more than tensors, which is opened only where it is trusted") from error


def convert_1(source, target):
    import torch

    program = exported_program(source)
    try:
        torch.onnx.export(program, (), target, dynamo=True, external_data=False, verbose=False)
    except torch.onnx.OnnxExporterError as error:  # a page of text around what its first cause says in a line
        while error.__cause__:
            error = error.__cause__
        raise error


def open_model(path):
    import onnxruntime

    def ports(values):
        numpy_names = {"tensor(float)": "float32", "tensor(double)": "float64"}
        return [
            (
                value.name,
                numpy_names.get(value.type, value.type.removeprefix("tensor(").removesuffix(")")),
                [dim if isinstance(dim, int) else None for dim in value.shape] if value.type[:6] == "tensor" else None,
            )
            for value in values
        ]

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs, outputs = ports(session.get_inputs()), ports(session.get_outputs())

    def call(*arrays):
        return session.run(None, {name: array for (name, _, _), array in zip(inputs, arrays)})

    return inputs, outputs, call


FILES = ['0.pt2', '1.onnx']
STEPS = [('torch-onnx', convert_1)]


def ordered(ports, names):
    """The names in the order in which the model has what they name: by name, as most tools leave it; where names are
    lost, by the numbers that TensorFlow gives in their place, where an output that is an input or a constant may have
    none; else as they are, since other tools keep the order."""
    import re

    plain = [name for name, _, _ in ports]
    if len(set(plain)) == len(plain) and set(plain) <= set(names):
        return plain
    found = [re.sub(r"^serving_default_|:0$|(?<=^out)0+(?=[0-9])", "", name) for name, _, _ in ports]
    if len(set(found)) == len(found) and set(found) <= set(names):
        return found
    if len(found) != len(names):
        raise ValueError(f"the model has {', '.join(found) or 'nothing'} in place of {', '.join(names)}")
    numbered = r"(?:Stateful)?PartitionedCall(?:_[0-9]+)?:([0-9]+)|(?:in|out|output_)([0-9]+)|Identity(?:_([0-9]+))?"
    matches = [re.fullmatch(numbered, name) or re.fullmatch(numbered, port[0]) for name, port in zip(found, ports)]
    numbers = [int(next(filter(None, match.groups()), 0)) if match else -1 for match in matches]
    known = [number for number in numbers if number >= 0]
    left = [number for number in range(len(names)) if number not in known]
    if len(known) + len(left) > len(names):  # one twice, or one too many
        return names
    rest = iter(left)
    return [names[number if number >= 0 else next(rest)] for number in numbers]


def load(parameters):
    import os
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="conversion-")
    step = "write"
    try:
        write(parameters, os.path.join(folder, FILES[0]))
        for (step, convert), source, target in zip(STEPS, FILES, FILES[1:]):
            convert(os.path.join(folder, source), os.path.join(folder, target))
        step = "open"
        inputs, outputs, call = open_model(os.path.join(folder, FILES[-1]))
        taken, wanted = ordered(inputs, list(INPUTS)), [f"out{i}" for i in range(len(OUTPUTS))]
        given = ordered(outputs, wanted) if len(outputs) == len(wanted) else None
    except Exception as error:
        error.add_note(f"in step {step}")
        raise
    finally:
        shutil.rmtree(folder)

    def run(*arrays):
        arrays = dict(zip(INPUTS, arrays))
        try:
            results = call(*[arrays[name] for name in taken])
        except Exception as error:
            error.add_note("in step run")
            raise
        return [results[given.index(name)] for name in wanted] if given else results  # too few or too many

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[0.1257302210933933, -0.1321048632913019, 0.6404226504432821, 0.10490011715303971, -0.535669373161111, 0.36159505490948474, 1.3040000451301372, 0.9470809631292422, -0.7037352358069926, -1.2654214710460525, -0.6232744625373522, 0.0413259793472436, -2.3250307746388343, -0.21879166393254573, -1.2459109472530652, -0.7322673547034516, -0.5442589828573099, -0.31630015636915454, 0.4116305363741328, 1.0425133694426776, -0.12853466294403426, 1.3664634705496859, -0.6651946734866135, 0.3515100700930197, 0.9034701816518086, 0.09401229776087457, -0.7434992493538084, -0.9217253762584194, -0.45772582566733916, 0.2201951234700494, -1.009618183538736, -0.20917557487171307, -0.15922500991447772, 0.5408455846858077, 0.2146591225063409, 0.3553727090399214, -0.6538286094183394]], dtype='float64'),
}
EXPECTED = [
    array([[0.1257302210933933, -0.12375089610358335, 0.6404226504432821, 0.10490011715303971, -0.4147226099809701, 0.36159505490948474, 1.3040000451301372, 0.9470809631292422, -0.5052660995499492, -0.7178796344861897, -0.4638141605102773, 0.0413259793472436, -0.9022195651525208, -0.1965109035238474, -0.7123212714145379, -0.519182430738466, -0.41972838472190205, -0.2711593488312371, 0.4116305363741328, 1.0425133694426776, -0.12061692011637092, 1.3664634705496859, -0.48582657796980305, 0.3515100700930197, 0.9034701816518086, 0.09401229776087457, -0.5245527073743865, -0.6021679613682109, -0.36727907173350643, 0.2201951234700494, -0.635641929074577, -0.1887472124654751, -0.14719555207689622, 0.5408455846858077, 0.2146591225063409, 0.3553727090399214, -0.4799491113561817]], dtype='float64'),
]
ALLOWED = [
    array([[0.0, 7.348293618611909e-16, 0.0, 0.0, 8.963511099918497e-16, 0.0, 0.0, 0.0, 9.46612843416544e-16, 1.0646370643331236e-15, 9.23602394847943e-16, 0.0, 1.1669662820249065e-15, 7.75219279616128e-16, 1.0615515530024367e-15, 9.543379590684442e-16, 8.991298731785846e-16, 8.166574909824959e-16, 0.0, 0.0, 7.33089655711378e-16, 0.0, 9.35821741193556e-16, 0.0, 0.0, 0.0, 9.57319061453347e-16, 1.0004041824763838e-15, 8.700146557258406e-16, 0.0, 1.018985967312967e-15, 7.709095653315873e-16, 7.478437602941846e-16, 0.0, 0.0, 0.0, 9.32559091813102e-16]], dtype='float64'),
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
