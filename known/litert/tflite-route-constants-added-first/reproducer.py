"""tflite-route-constants-added-first: ValueMismatch of tensorflow/tflite/litert

ran with python 3.11.7, numpy 2.4.6, tensorflow-cpu 2.21.0, ai-edge-litert 2.3.0
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['tensorflow', 'ai_edge_litert', 'ai_edge_litert.interpreter']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import tensorflow as tf

TARGET = 'tensorflow/tflite/litert'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (2, 3, 4))}
PARAMETERS = {'w1': ('float32', (4,)), 'w2': ('float32', (4,)), 'w3': ('float32', (1, 3, 1))}
OUTPUTS = [('float32', (2, 3, 4))]


def normalize(x, axes, epsilon):
    """Zero mean, unit variance."""
    mean, variance = tf.nn.moments(x, axes, keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, None, None, epsilon)


def model(x0, w1, w2, w3):
    v0 = normalize(x0, list(range(-1, 0)), 0.0009765625) * w1 + w2
    v1 = tf.add(v0, w3)
    return (v1,)


TRUST = False


def write(parameters, path):
    specs = [tf.TensorSpec(shape, dtype, name=name) for name, (dtype, shape) in INPUTS.items()]

    @tf.function(input_signature=specs, autograph=False)
    def serve(*inputs):
        outputs = model(*inputs, *[tf.constant(parameters[name]) for name in PARAMETERS])
        # TensorFlow sorts them by name
        return {f"out{i:03}": tf.identity(output) for i, output in enumerate(outputs)}

    module = tf.Module()
    module.serve = serve
    tf.saved_model.save(module, path, signatures=serve)


def convert_1(source, target):
    from pathlib import Path

    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_saved_model(source)
    converter.canonicalizing_inf_as_min_max_float = False  # else infinities are replaced on purpose
    Path(target).write_bytes(converter.convert())


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


FILES = ['0', '1.tflite']
STEPS = [('tflite', convert_1)]


def ordered(ports, names):
    """The names in the order in which the model has what they name: by name, as most tools leave it; where names are
    lost, by the numbers that TensorFlow gives in their place, where outputs that are inputs or constants may have
    none, and all may be sorted as text (10 before 2); else as they are, since other tools keep the order."""
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
    as_text = sorted(known) != known == sorted(known, key=str)
    rest = iter(sorted(left, key=str) if as_text else left)
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
    'x0': array([[[1.6332918448824785e-06, 7.306165821932355e+32, 1.0250927558111389e-17, 4.58811240831278e-34], [6.529442412369236e-15, -9.634474074361037e+16, -6.082935455495664e+21, 1820.044921875], [7.95541644984122e-15, -1.3671126992564821e+32, -1.0773991006019475e+33, 2.8010510504827835e-05]], [[2.488743575668195e-07, 911891712.0, -4.307554556654387e+16, -3057982464.0], [1.496929326094687e-05, -7.218778046080843e-05, 291107045376.0, 1.7847267423779956e+32], [5.458543475400125e-35, 8.40468292811801e-32, -1.9908542144009837e+20, 0.001657388755120337]]], dtype='float32'),
    'w1': array([-0.006826779805123806, 1.0461432933807373, 0.7415884137153625, 0.7239565253257751], dtype='float32'),
    'w2': array([-0.006826779805123806, 1.0461432933807373, 0.7415884137153625, 0.7239565253257751], dtype='float32'),
    'w3': array([[[3.0], [5.0], [2.0]]], dtype='float32'),
}
EXPECTED = [
    array([[[2.9971146633530625, 5.858116629513608, 3.3134321434288903, 3.3059800305473526], [4.989231693801148, 6.65010889501004, 4.457119602999157, 6.141941846947162], [1.988571252105227, 3.433721410927344, 1.4670253646281435, 3.211979417955463]], [[2.9892317767748646, 4.650134496692378, 2.45711960285595, 4.141932929179322], [4.997114663353063, 5.442152181336446, 5.313432143428891, 6.977886009661042], [1.9892317770366896, 3.6501344054250273, 1.4571196028559463, 3.1419330201041973]]], dtype='float64'),
]
ALLOWED = [
    array([[[inf, inf, inf, inf], [inf, inf, inf, inf], [inf, inf, inf, inf]], [[1.878249496560771e-07, 1.7563832257943287e-06, 2.5065763977837817e-06, 1.270529968502663e-06], [inf, inf, inf, inf], [inf, inf, inf, inf]]], dtype='float64'),
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
