"""ValueMismatch  apart.buffers   tf-mirrored-bfloat16 on 2 ranks vs one device

ran with numpy 2.4.6, tensorflow-cpu|tensorflow 2.21.0, keras 3.15.1
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['tensorflow', 'keras']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import os

import keras
import numpy as np
import tensorflow as tf

DTYPE = "float32"
BATCHES = [(0, 2)]  # samples of each step: the first, and the one after the last
FROZEN = []
CLIP = None
NORMS = {'l1': (None, 3)}  # layers of batch normalisation, and what they are given
keras.config.set_floatx(DTYPE)
keras.config.set_dtype_policy(DTYPE)  # an earlier program's is kept otherwise
LOSS = keras.losses.MeanSquaredError(reduction="sum")  # of the dtype that is set when it is made
DEVICES = [f"/cpu:{number}" for number in range(int(os.environ.get("VIRTUAL_DEVICES", "1")))]
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * len(DEVICES)
)
OPTIMIZER, OPTIONS = keras.optimizers.SGD, {'learning_rate': 0.125, 'momentum': 0.0, 'weight_decay': 0.0, 'nesterov': False}


def model(p, norms, x, training):
    l1 = norms["l1"](x, training=training) * p["l1.weight"] + p["l1.bias"]
    l2 = tf.matmul(l1, p["l2.weight"], transpose_b=True)
    return l2


def criterion(outputs, y, coefficient):
    """The sum of the samples' losses, each times its coefficient."""
    return tf.reduce_sum(tf.reduce_mean((outputs - y) ** 2, axis=1) * coefficient)


SHARDS = 1  # of the samples of a batch, whose own statistics batch normalisation uses on one device
FIRST = True  # running statistics are those of the first share; else each share moves them, one after the other

def strategy_of(rank, world):
    return tf.distribute.MirroredStrategy(DEVICES, cross_device_ops=tf.distribute.ReductionToOneDevice())

class Narrow(keras.Model):
    """The weights and the layers of batch normalisation, under a policy: within `call` weights are cast."""

    def __init__(self, norms, given):
        super().__init__(dtype=keras.DTypePolicy("mixed_bfloat16"))
        self.norms = norms
        self.kept = {
            name: self.add_weight(a.shape, keras.initializers.Constant(a), trainable=name not in FROZEN, name=name)
            for name, a in given.items()
        }

    def call(self, x, training=False):
        return model({name: kept.value for name, kept in self.kept.items()}, self.norms, x, training)


def variables(subject, given):
    subject.model = Narrow(subject.norms, given)
    subject.prefix = f"{subject.model.name}_"
    return {name: kept.value for name, kept in subject.model.kept.items()}

def optimizer_of(subject):
    return OPTIMIZER(**OPTIONS)

def normalisation():
    return keras.layers.BatchNormalization(1, 0.9, 1e-5, center=False, scale=False, dtype="mixed_bfloat16")

def feed(strategy, arrays, rows):
    """The samples in these rows, as even a split among the replicas as there is."""
    shares = np.array_split(rows, strategy.num_replicas_in_sync)

    def of(context):
        mine = shares[context.replica_id_in_sync_group]
        return tuple(tf.constant(arrays[name][mine]) for name in ("x", "y", "coefficient"))

    return [strategy.experimental_distribute_values_from_function(of)]

def gradient(subject, x, y, coefficient):
    """The loss of these samples, and its gradients by what is trained."""
    with tf.GradientTape() as tape:
        loss = criterion(tf.cast(subject.model(x, training=True), DTYPE), y, coefficient)
        scaled = loss
    found = tape.gradient(scaled, subject.trained)
    return loss, [value if value is None else tf.convert_to_tensor(value) for value in found]

def update(subject, strategy, loss, gradients):
    """One step of the optimiser, on each replica; it adds up the replicas' gradients. Returns what they had."""
    subject.optimizer.apply(gradients, subject.trained)
    return loss, gradients

def compile_step(subject, strategy):
    return tf.function(step_of(subject, strategy), autograph=False, reduce_retracing=True)

def summed(strategy, value):
    """The sum over all replicas."""
    return strategy.reduce("SUM", value, axis=None)

def predict(strategy, subject, x):
    return tf.cast(subject.model(tf.constant(x), training=False), DTYPE)

def evaluate(strategy, subject, x, y, coefficient):
    """The loss of all samples after training."""
    return criterion(predict(strategy, subject, x), tf.constant(y), tf.constant(coefficient))

def parts_of(variable):
    """The variables that one is made of."""
    return [variable]

def states(subject):
    """What the optimiser keeps."""
    kept = {v.path.split("/", 1)[-1]: v.value for v in subject.optimizer.variables}
    named = {"product" if name.startswith("variable") else name: value for name, value in kept.items()}  # of Nadam
    named = {name.removeprefix(subject.prefix): value for name, value in named.items()}
    return {name.replace("_0_", "."): value for name, value in named.items()}

def apart(strategy, variables):
    """The greatest difference between what two replicas have of the same variable."""
    copies = [[np.asarray(copy) for copy in strategy.experimental_local_results(v)] for v in variables]
    gaps = [np.abs(copy - all_of[0]) for all_of in copies for copy in all_of]
    return np.float64(max((gap.max() for gap in gaps if gap.size), default=0))

def step_of(subject, strategy):
    """A function that takes the samples of one step: every replica's part, then the optimiser."""

    def mine(parts):
        return update(subject, strategy, *replica(subject, parts))

    return lambda parts: strategy.run(mine, args=(parts,))


class Subject:
    """What is trained, under a strategy: parameters, layers of batch normalisation, the optimiser.
    prefix: of the names of what the optimiser keeps."""

    prefix = ""

    def __init__(self, strategy, arrays):
        with strategy.scope():
            given = {name.removeprefix("initial."): a for name, a in arrays.items() if name.startswith("initial.")}
            self.norms = {name: normalisation() for name in NORMS}
            for name, shape in NORMS.items():
                self.norms[name].build(shape)
            self.p = variables(self, given)
            self.optimizer = optimizer_of(self)
            self.optimizer.build(self.trained)

    @property
    def trained(self):
        return [part for name, v in self.p.items() if name not in FROZEN for part in parts_of(v)]

    @property
    def buffers(self):
        return {
            f"{name}.{key}": getattr(norm, key).value
            for name, norm in self.norms.items()
            for key in ("moving_mean", "moving_variance")
        }


def replica(subject, parts):
    """One replica's part of a step: its loss and gradients of all its samples."""
    loss, total = tf.zeros((), DTYPE), None
    for number, (x, y, coefficient) in enumerate(parts):
        kept = [tf.identity(tf.convert_to_tensor(value)) for value in subject.buffers.values()]
        one, found = gradient(subject, x, y, coefficient)
        if FIRST and number % SHARDS:
            for buffer, value in zip(subject.buffers.values(), kept):
                buffer.assign(value)
        loss += one
        total = found if total is None else [a if b is None else a + b for a, b in zip(total, found)]
    return loss, total


def train(rank, world, arrays):
    """All that is compared, by name."""
    strategy = strategy_of(rank, world)
    subject = Subject(strategy, arrays)
    return once(strategy, subject, compile_step(subject, strategy), arrays)


def once(strategy, subject, step, arrays):
    """All that is compared, by name."""
    found = {}
    for number, (first, last) in enumerate(BATCHES):
        rows = np.array_split(np.arange(first, last), 1)
        loss, gradients = step([part for mine in rows if len(mine) for part in feed(strategy, arrays, mine)])
        found[f"loss.{number}"] = summed(strategy, loss)
        if number == 0:
            named = zip((name for name in subject.p if name not in FROZEN), gradients)
            found |= {f"gradient.{name}": summed(strategy, value) for name, value in named if value is not None}
    found["prediction"] = predict(strategy, subject, arrays["x"])
    found["loss.after"] = evaluate(strategy, subject, arrays["x"], arrays["y"], arrays["coefficient"])
    found |= {f"parameter.{name}": value for name, value in subject.p.items()}
    found |= {f"buffer.{name}": value for name, value in subject.buffers.items()}
    found |= {f"state.{name}": value for name, value in states(subject).items()}
    kept = [*subject.p.values(), *(variable.value for variable in subject.optimizer.variables)]
    found["apart.parameters"] = apart(strategy, kept)
    if subject.buffers:
        found["apart.buffers"] = apart(strategy, subject.buffers.values())
    return {name: np.asarray(tf.convert_to_tensor(value)) for name, value in found.items()}


# ---- its arrays, and what a correct run returns: value, and how far from it (inf: anything) ----

import ctypes
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from numpy import array, inf, nan

WORLD = 1
VARIABLES = {'VIRTUAL_DEVICES': '2'}
SYMPTOM = 'value'
SECONDS = 60.0  # for all ranks
GRACE = 3.0  # for the others once one has ended in another way than well: they wait for it, as a rule
ZERO_SIGNS = False
ARRAYS = {
    'x': array([[-0.9017518758773804, 0.5694094300270081, 0.2113729566335678], [-0.938700795173645, 0.48817887902259827, -1.1096880435943604]], dtype='float32'),
    'y': array([[1.2107120752334595, -0.24185027182102203], [-0.15992724895477295, -0.4407057464122772]], dtype='float32'),
    'coefficient': array([0.5, 0.5], dtype='float32'),
    'initial.l1.weight': array([0.7174429893493652, 1.2437636852264404, 0.9445212483406067], dtype='float32'),
    'initial.l1.bias': array([0.10754174739122391, -0.10657880455255508, -0.07885468751192093], dtype='float32'),
    'initial.l2.weight': array([[0.2797013521194458, -0.43404945731163025, 0.6488003134727478], [-1.7184394598007202, 0.07982576638460159, -0.2674158215522766]], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(0.3791706434578228, dtype='float64'),
    'gradient.l1.weight': array([-0.0, 0.0, 0.0], dtype='float64'),
    'gradient.l1.bias': array([-0.43041817297754176, 0.2306121256631915, -0.36974607796049286], dtype='float64'),
    'gradient.l2.weight': array([[-0.053793813929505906, 0.05331213710032386, 0.039444164618732735], [0.018180285468317396, -0.01801749681998919, -0.013330643812829439]], dtype='float64'),
    'prediction': array([[-0.2650706010678656, 0.7808363331492514], [-1.0729946622873463, 1.1697055031051882]], dtype='float64'),
    'loss.after': array(1.6627347233797416, dtype='float64'),
    'parameter.l1.weight': array([0.7174429893493652, 1.2437636852264404, 0.9445212483406067], dtype='float64'),
    'parameter.l1.bias': array([0.16134401901341663, -0.13540532026045402, -0.03263642776685932], dtype='float64'),
    'parameter.l2.weight': array([[0.286425578860634, -0.44071347444917075, 0.6438697928954062], [-1.7207119954842598, 0.08207795348710024, -0.2657494910756729]], dtype='float64'),
    'buffer.l1.moving_mean': array([-0.09017518758773801, 0.05694094300270079, 0.021137295663356776], dtype='float64'),
    'buffer.l1.moving_variance': array([0.9, 0.9, 0.9], dtype='float64'),
    'state.iteration': array(1, dtype='int64'),
    'state.learning_rate': array(0.125, dtype='float64'),
    'apart.parameters': array(0.0, dtype='float64'),
    'apart.buffers': array(0.0, dtype='float64'),
}
ALLOWED = {
    'loss.0': array(inf, dtype='float64'),
    'gradient.l1.weight': array([inf, inf, inf], dtype='float64'),
    'gradient.l1.bias': array([inf, inf, inf], dtype='float64'),
    'gradient.l2.weight': array([[inf, inf, inf], [inf, inf, inf]], dtype='float64'),
    'prediction': array([[inf, inf], [inf, inf]], dtype='float64'),
    'loss.after': array(inf, dtype='float64'),
    'parameter.l1.weight': array([inf, 0.250126671815615, 0.28825641427243953], dtype='float64'),
    'parameter.l1.bias': array([inf, inf, inf], dtype='float64'),
    'parameter.l2.weight': array([[0.26910706320229844, 0.3659958219394218, 0.2266616986172217], [0.27723017422395846, 0.3369353135590175, 0.32459752571435935]], dtype='float64'),
    'buffer.l1.moving_mean': array([0.0026320666843958037, 0.002139043552658773, 0.0011039184044670913], dtype='float64'),
    'buffer.l1.moving_variance': array([6.257630371253598e-06, 3.558867200093019e-06, 1.8602719112248422e-06], dtype='float64'),
    'state.iteration': array(0.0, dtype='float64'),
    'state.learning_rate': array(5.960464477539063e-08, dtype='float64'),
    'apart.parameters': array(2.2250738585072014e-308, dtype='float64'),
    'apart.buffers': array(2.2250738585072014e-308, dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l1.weight': ('float32', (3,)), 'gradient.l1.bias': ('float32', (3,)), 'gradient.l2.weight': ('float32', (2, 3)), 'prediction': ('float32', (2, 2)), 'loss.after': ('float32', ()), 'parameter.l1.weight': ('float32', (3,)), 'parameter.l1.bias': ('float32', (3,)), 'parameter.l2.weight': ('float32', (2, 3)), 'buffer.l1.moving_mean': ('float32', (3,)), 'buffer.l1.moving_variance': ('float32', (3,)), 'state.iteration': ('int64', ()), 'state.learning_rate': ('float32', ()), 'apart.parameters': ('float64', ()), 'apart.buffers': ('float64', ())}


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


def launched():
    """The number of this rank and how many there are, as this file, torchrun or TF_CONFIG says; None: not launched."""
    if "RANK" in os.environ:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if "TF_CONFIG" in os.environ:
        config = json.loads(os.environ["TF_CONFIG"])
        return config["task"]["index"], len(config["cluster"]["worker"])
    return None


def rank(number, world):
    """One rank: 1 where it returns something wrong."""
    try:
        found = train(number, world, ARRAYS)
    except Exception as error:
        print(f"rank {number}: {type(error).__name__}: {error}", flush=True)
        return 1 if SYMPTOM == "rejected" else 77
    if set(found) != set(EXPECTED):
        print(f"rank {number}: other names than expected: {sorted(set(found) ^ set(EXPECTED))}", flush=True)
        return 1
    problems = {name: wrong(found[name], EXPECTED[name], ALLOWED[name], *TYPES[name]) for name in EXPECTED}
    for name, problem in problems.items():
        if problem:
            print(f"rank {number}: {name}: {problem}", flush=True)
    return int(any(problems.values()))


def main():
    if launched():
        if "RENDEZVOUS" in os.environ and sys.platform == "linux":
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no rank outlives the process that started it
        code = rank(*launched())
        sys.stdout.flush()
        os._exit(code)  # threads of a process group that is taken down at the end may abort a rank that is done
    with tempfile.TemporaryDirectory() as folder:
        meeting = {**VARIABLES, "RENDEZVOUS": f"file://{folder}/meet", "WORLD_SIZE": str(WORLD), "GLOO_SOCKET_IFNAME": "lo"}
        ranks = [
            subprocess.Popen([sys.executable, __file__], env={**os.environ, **meeting, "RANK": str(number)})
            for number in range(WORLD)
        ]
        deadline = time.monotonic() + SECONDS
        while None in (codes := [process.poll() for process in ranks]) and time.monotonic() < deadline:
            if any(codes):
                deadline = min(deadline, time.monotonic() + GRACE)
            time.sleep(0.02)
        for process in ranks:
            process.kill()
            process.wait()
    crashed, hanging = any(code is not None and code < 0 for code in codes), None in codes
    shown = {"crash": crashed, "timeout": hanging and not crashed}.get(SYMPTOM, 1 in codes)
    told = "reproduced" if shown else "could not be run" if any(code != 0 for code in codes) else "not reproduced"
    print(told, "- exit statuses of the ranks:", codes)
    return {"reproduced": 1, "not reproduced": 0}.get(told, 77)


if __name__ == "__main__":
    sys.exit(main())
