"""torch-onnx-cosine-embedding-epsilon: SpecialMismatch of torch/torch-onnx/ort-all

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
INPUTS = {'x0': ('float64', (1, 37)), 'x1': ('float64', (1, 37)), 'x2': ('bool', (1,))}
PARAMETERS = {}
OUTPUTS = [('float64', (1,))]


def model(x0, x1, x2):
    v0 = torch.nn.functional.cosine_embedding_loss(x0, x1, torch.where(x2, 1, -1), margin=0.0, reduction='none')
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

SYMPTOM = 'special'  # SpecialMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[-2.513929769064033e-305, -1.651950974752247e-305, -1.7813242270739496e-305, 6.08297982889713e-306, -5.663851343904026e-306, 2.881885506183544e-306, 1.920851953567169e-305, 1.9547875210203163e-305, 1.0826943484826037e-305, -1.0270652660010239e-305, -1.7200948072747212e-305, -1.8565340874578866e-305, -7.834649141234903e-306, -1.1706829161774549e-306, -2.2153018806685147e-305, -2.5849021976422384e-305, 6.965418927161953e-306, -4.21901921748262e-305, -4.0341210377535827e-306, 9.702334059928435e-306, -2.2451087371647165e-305, -2.5358388651991826e-305, -1.733067879296271e-305, 1.4765082340248308e-305, -2.958175817377567e-306, -4.2598317350230973e-305, -9.645906301583828e-306, 2.310139150801546e-305, 2.241371440381461e-305, 1.4355352313158875e-305, -5.4241118623266784e-306, -4.203650548224121e-305, 3.8637872330572637e-306, -4.0096104745934346e-306, 1.7498661970876447e-306, 3.5141023326664384e-305, 4.1851846664869304e-306]], dtype='float64'),
    'x1': array([[7.790738694664297e-307, 3.0981516350598787e-305, 2.790497132466485e-305, -1.162722238844381e-305, -6.789162698702097e-306, -1.2016320320599966e-305, 1.2981076221295565e-305, -1.2774145813736858e-306, 1.7017606758681363e-305, -4.2090845372102267e-305, 3.56934320810024e-305, -2.197183269700108e-306, 1.5502257257183908e-305, -3.1116306399641923e-306, -8.637668468692938e-306, 1.0551852108847251e-305, 1.8786339799990396e-305, -4.6145937494716696e-306, -3.481195846428251e-306, 1.5623475750158166e-305, -1.9830499434424592e-305, -3.4504859094090455e-305, 8.999565490057817e-306, -1.5278678883289598e-305, -4.375449238017964e-305, -1.8548014357164295e-305, -1.0654096431042897e-305, -2.7186827678111265e-305, -3.4005425901514537e-305, 8.347839587061413e-307, 2.0443605664869658e-305, -5.311857584632581e-306, -1.6942654326270773e-305, 8.771990113608622e-306, 1.6342043084528996e-305, -6.835668377311345e-306, 1.241012327398605e-305]], dtype='float64'),
    'x2': array([True], dtype='bool'),
}
EXPECTED = [
    array([1.0], dtype='float64'),
]
ALLOWED = [
    array([3.3306690738754696e-16], dtype='float64'),
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
