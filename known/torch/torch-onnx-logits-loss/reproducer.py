"""torch-onnx-logits-loss: SpecialMismatch of torch/torch-onnx/ort-all

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
INPUTS = {'x0': ('float64', (1, 37)), 'x1': ('float64', (1, 37))}
PARAMETERS = {}
OUTPUTS = [('float64', (1, 37))]


def model(x0, x1):
    v0 = torch.nn.functional.binary_cross_entropy_with_logits(x0, x1, reduction='none')
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
    'x0': array([[-17382.66398496882, -13366.427931811324, -13611.067085649871, -3516.1713127840976, -23125.815796967032, -1888.9719608460778, -9572.29228096346, 8936.001849299788, 9568.47237579234, 13922.582291390865, 7674.701130947078, -530.2977875726773, 8597.939889439096, 15054.811563838433, -6535.945334170486, 6103.51145830187, -426.73827710852373, 14400.167254152393, -8368.950200968433, -3015.4660956552657, 3623.3859316943917, 2581.1026702099753, -16394.47962447648, 3601.55232237386, -1184.9769951697288, -2397.4784920156203, -1553.0166200229314, 2189.7170507821916, -18163.956614546405, 15524.665679968663, -8614.416732885682, -22413.678581872875, -819.7449383484104, 14574.804175244144, -5186.009711032398, 15512.756209056683, 15569.420010285769]], dtype='float64'),
    'x1': array([[-8028.369359828766, 2428.499070790021, -16563.45427042233, 6561.04877556666, 11434.530226920893, -4526.110030078989, 4304.857455543091, 2509.3256908418202, -3943.520554588936, -8624.048655156083, -20325.52427456725, 14104.234840116704, -476.32237192333935, 25223.274107494348, 8262.18249174616, 2777.8052697538274, -6574.310585061062, 13924.692044318112, -5062.891144787869, 15699.49132247599, -3983.6128088991195, 1859.5392958113844, -15226.704029731744, 23432.323817087243, -940.2582933360399, -3851.135890587634, 8108.476339474449, -8913.718361585312, 7676.072757534051, -11712.404048300676, 5452.417714953117, -10441.262392158023, -18370.68108918472, -5937.675843336032, -14639.144154991143, 5532.7823022063385, 216.7111699934259]], dtype='float64'),
}
EXPECTED = [
    array([[-139554446.9291227, 32460357.81218558, -225446287.2448122, 23069771.486424718, 264432839.7526242, -8549694.938523408, 41207353.79234313, -22414403.01200867, 37743035.96232932, 120082949.66866067, 155999998.83824453, 7479444.5311193615, 4103989.0616813633, -379716583.8998086, 54001173.10699339, -16948262.781415503, -2805509.972245288, -200503494.23349187, -42371083.863653734, 47341283.801960394, 14437789.995014343, -4797080.739108931, -249633888.96337098, -84389138.7097245, -1114184.447120758, -9233015.467513274, 12592598.51826652, 19520710.79928444, 139427852.53795007, 181846681.8242595, 46969398.398374446, -234027099.24682704, -15059272.836872038, 86555037.47687553, -75918743.74898723, -85813190.25570124, -3358497.8065378]], dtype='float64'),
]
ALLOWED = [
    array([[2.0143682707623412e-07, 4.686454755794889e-08, 3.253994681321944e-07, 3.330027287658515e-08, 3.81678930343697e-07, 1.234178602875922e-08, 5.948478645470775e-08, 3.237032433135433e-08, 5.447414403006795e-08, 1.7331451248521088e-07, 2.251532279392765e-07, 1.0795595959670334e-08, 5.923246315859582e-09, 5.480745511797549e-07, 7.794660604124106e-08, 2.4474809777471373e-08, 4.049638293808206e-09, 2.8941664957709877e-07, 6.116305037212706e-08, 6.833054634185955e-08, 2.0837917162362562e-08, 6.929309755079366e-09, 3.603122803808112e-07, 1.2180599154563895e-07, 1.6094070057228249e-09, 1.3328580224246968e-08, 1.8176495076145948e-08, 2.817404558438351e-08, 2.012549820750717e-07, 2.62457485268916e-07, 6.780002396691266e-08, 3.377938405651562e-07, 2.1735807190639288e-08, 1.249240143774014e-07, 1.0957851635339744e-07, 1.238877589902263e-07, 4.8818573500583215e-09]], dtype='float64'),
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
