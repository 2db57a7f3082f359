"""litert-torch-attention-nan: SpecialMismatch of torch/litert-torch/litert

ran with python 3.11.7, numpy 2.4.6, litert-torch 0.10.0, torch 2.13.0+cpu, ai-edge-litert 2.3.0 (environment litert-torch)
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['torch', 'litert_torch', 'ai_edge_litert', 'ai_edge_litert.interpreter']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import torch

TARGET = 'torch/litert-torch/litert'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'w1': ('float32', (1, 4, 4, 3)), 'w2': ('bool', (1, 1, 4, 4))}
PARAMETERS = {'w0': ('float32', (1, 4, 4, 2))}
OUTPUTS = [('float32', (1, 4, 4, 3))]


def model(w1, w2, w0):
    v0 = torch.nn.functional.scaled_dot_product_attention(w0, w0, w1, scale=0.25, attn_mask=w2)
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

    # torch.export.load unpickles whatever does not load as plain tensors, unless told so
    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = str(int(not TRUST))
    try:
        return torch.export.load(path)
    except pickle.UnpicklingError as error:
        raise ValueError("it holds a pickle of more than tensors, which is opened only where it is trusted") from error

def convert_1(source, target):
    import litert_torch
    import torch

    program = exported_program(source)
    values = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    given = [values[name] for name in program.graph_signature.user_inputs]
    examples = [torch.zeros([d if isinstance(d, int) else 1 for d in one.shape], dtype=one.dtype) for one in given]
    args, kwargs = torch.utils._pytree.tree_unflatten(examples, program.call_spec.in_spec)
    # else 64-bit numbers are made 32-bit ones on purpose
    litert_torch.convert(program.module(), tuple(args), kwargs or None, enable_x64=True).export(target)


def open_model(path):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_path=path, num_threads=1, experimental_op_resolver_type=OpResolverType.BUILTIN
    )
    names = list(interpreter.get_signature_list())

    def ports(details):
        return [
            (name, np.dtype(one["dtype"]).name, [None if d < 0 else int(d) for d in one["shape_signature"]])
            for name, one in details.items()
        ]

    if names:  # names survive in signatures only
        runner = interpreter.get_signature_runner("serving_default" if "serving_default" in names else names[0])
        inputs, outputs = ports(runner.get_input_details()), ports(runner.get_output_details())

        def call(*arrays):
            returned = runner(**{name: array for (name, _, _), array in zip(inputs, arrays)})
            return [returned[name] for name, _, _ in outputs]
    else:
        given, returned = interpreter.get_input_details(), interpreter.get_output_details()
        inputs, outputs = [[ports({one["name"]: one})[0] for one in side] for side in (given, returned)]

        def call(*arrays):
            for one, array in zip(given, arrays):
                interpreter.resize_tensor_input(one["index"], array.shape)
            interpreter.allocate_tensors()
            for one, array in zip(given, arrays):
                interpreter.set_tensor(one["index"], array)
            interpreter.invoke()
            return [interpreter.get_tensor(one["index"]) for one in returned]

    return inputs, outputs, call


FILES = ['0.pt2', '1.tflite']
STEPS = [('litert-torch', convert_1)]


def ordered(ports, names):
    """The names in the order in which the model has what they name: by name, as most tools leave it; where names are
    lost, by the numbers that TensorFlow gives in their place, where an output that is an input or a constant may have
    none; else as they are, since other tools keep the order."""
    import re

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
    'w0': array([[[[1.116974949836731, 0.3465062379837036], [0.2999947667121887, -1.653151273727417], [0.7383754253387451, 0.4122106730937958], [-0.08683011680841446, -0.021422570571303368]], [[0.4703518748283386, 0.8995699882507324], [-0.11020976305007935, -0.08996408432722092], [-0.2232612520456314, 0.5570608973503113], [-1.4266316890716553, -0.6648068428039551]], [[-1.1844509840011597, -0.7706793546676636], [-0.6203822493553162, -0.19358055293560028], [0.5768662691116333, 0.6490559577941895], [0.6862038373947144, inf]], [[-1.1323918104171753, -1.3404241800308228], [-0.2862057387828827, 0.6550053954124451], [-0.260248064994812, -0.4512174129486084], [-0.1912190169095993, -1.5864778757095337]]]], dtype='float32'),
    'w1': array([[[[-0.43454304337501526, 0.609111487865448, -0.31640082597732544], [1.7020748853683472, 1.1841063499450684, 0.18314695358276367], [-0.2932005524635315, 1.127048373222351, -0.43466615676879883], [-0.9090331196784973, -0.2763030529022217, 0.4738647937774658]], [[-0.5750827789306641, 0.9076216220855713, -0.7125856876373291], [-2.274937152862549, 0.4935726225376129, -0.3146947920322418], [1.5725971460342407, 0.802915632724762, 1.8921583890914917], [0.367905855178833, -1.0945695638656616, -0.5537161827087402]], [[-1.475950837135315, 0.01826019585132599, 0.9421617388725281], [-0.055347125977277756, -0.8288448452949524, -0.44680315256118774], [-0.58902907371521, -0.7265626192092896, 0.691008448600769], [-1.6238447427749634, 0.6282341480255127, -0.6322577595710754]], [[1.5807322263717651, 2.0966076850891113, -0.8969366550445557], [-0.42174798250198364, -0.08029128611087799, 0.7220509052276611], [2.051500082015991, 0.4062823951244354, -0.9917624592781067], [0.8028185963630676, 0.3195773661136627, 1.6421738862991333]]]], dtype='float32'),
    'w2': array([[[[False, False, False, False], [True, False, True, False], [True, False, False, True], [False, False, False, False]]]], dtype='bool'),
}
EXPECTED = [
    array([[[[nan, nan, nan], [-0.36583416285461895, 0.8608890201814735, -0.3738915241435644], [-0.641103515184653, 0.22366265674783628, 0.027626683603463462], [nan, nan, nan]], [[nan, nan, nan], [0.5131533544602921, 0.8545667698795362, 0.607246280610308], [-0.12996047874302602, -0.03747984984006164, -0.6375939465860013], [nan, nan, nan]], [[nan, nan, nan], [-1.1075655000513043, -0.29110396129361626, 0.8378445450540513], [nan, nan, nan], [nan, nan, nan]], [[nan, nan, nan], [1.8259031472766927, 1.216304149066215, -0.9463209311176861], [1.1982856820422914, 1.2229642901877207, 0.3513690883534307], [nan, nan, nan]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[inf, inf, inf], [7.617943269243815e-07, 1.7931706205969445e-06, 7.787268234084381e-07], [1.242014587381124e-06, 9.255925152657917e-07, 7.507097192324603e-07], [inf, inf, inf]], [[inf, inf, inf], [1.9094981785049198e-06, 1.513052539903802e-06, 2.3156113962737388e-06], [9.461490639291101e-07, 1.9776534655696815e-06, 1.264596707145382e-06], [inf, inf, inf]], [[inf, inf, inf], [inf, inf, inf], [0.0, 0.0, 0.0], [inf, inf, inf]], [[inf, inf, inf], [3.68912950836878e-06, 2.5405597597729376e-06, 1.918170292415229e-06], [2.465329857705948e-06, 2.521986772292124e-06, 2.589758642393819e-06], [inf, inf, inf]]]], dtype='float64'),
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
