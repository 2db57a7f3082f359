"""ValueMismatch  prediction   tf-parameter-server on 2 ranks vs one device

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
import random
import re
import socket

DTYPE = "float32"
BATCHES = [(0, 2)]  # samples of each step: the first, and the one after the last
FROZEN = []
CLIP = None
NORMS = {}  # layers of batch normalisation, and what they are given
keras.config.set_floatx(DTYPE)
keras.config.set_dtype_policy(DTYPE)  # an earlier program's is kept otherwise
LOSS = keras.losses.MeanSquaredError(reduction="sum")  # of the dtype that is set when it is made
DEVICES = [f"/cpu:{number}" for number in range(int(os.environ.get("VIRTUAL_DEVICES", "1")))]
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * len(DEVICES)
)
OPTIMIZER, OPTIONS = keras.optimizers.Lamb, {'learning_rate': 0.125, 'epsilon': 0.001, 'weight_decay': 0.0}


def model(p, norms, x, training):
    l0 = tf.matmul(x, p["l0.weight"], transpose_b=True)
    return l0


def criterion(outputs, y, coefficient):
    """The sum of the samples' losses, each times its coefficient."""
    return tf.reduce_sum(tf.reduce_mean((outputs - y) ** 2, axis=1) * coefficient)


SHARDS = 1  # of the samples of a batch, whose own statistics batch normalisation uses on one device
FIRST = True  # running statistics are those of the first share; else each share moves them, one after the other

def free_addresses(count):
    """So many of this machine that nothing holds, below the ports of outgoing connections."""
    draw, held = random.Random(os.getpid()), []
    while len(held) < count:
        one = socket.socket()
        held.append(one)
        try:
            one.bind(("127.0.0.1", draw.randrange(10000, 32768)))
        except OSError:
            held.pop().close()
    found = [f"127.0.0.1:{one.getsockname()[1]}" for one in held]
    for one in held:
        one.close()
    return found


def strategy_of(rank, world):
    """A server for each worker and one for the parameters, with the coordinator, for the whole life of the process."""
    if not hasattr(tf.distribute, "kept"):
        addresses = free_addresses(len(DEVICES) + 1)
        cluster = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})
        started = [("ps", 0), *(("worker", number) for number in range(len(DEVICES)))]
        threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=len(DEVICES) + 2)  # with one, it waits for ever
        tf.distribute.servers = [
            tf.distribute.Server(cluster, job, number, "grpc", config=threads) for job, number in started
        ]
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc")
        partitioner = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
        tf.distribute.kept = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
        tf.distribute.coordinator_of = tf.distribute.coordinator.ClusterCoordinator(tf.distribute.kept)
    return tf.distribute.kept

def variables(subject, given):
    return {name: tf.Variable(a, name not in FROZEN, name=name, dtype=DTYPE) for name, a in given.items()}

def optimizer_of(subject):
    return OPTIMIZER(**OPTIONS)

def normalisation():
    return keras.layers.BatchNormalization(1, 0.9, 1e-5, center=False, scale=False, dtype=DTYPE)

def feed(strategy, arrays, rows):
    """The samples in these rows, a share for each worker."""
    shares = np.array_split(rows, len(DEVICES))
    return [tuple(tf.constant(arrays[name][mine]) for name in ("x", "y", "coefficient")) for mine in shares]

def gradient(subject, x, y, coefficient):
    """The loss of these samples, and its gradients by what is trained."""
    with tf.GradientTape() as tape:
        loss = criterion(model(subject.p, subject.norms, x, True), y, coefficient)
    found = tape.gradient(loss, subject.trained)
    return loss, [value if value is None else tf.convert_to_tensor(value) for value in found]

def update(subject, strategy, loss, gradients):
    """One step of the optimiser, on each replica; it adds up the replicas' gradients. Returns what they had."""
    subject.optimizer.apply(gradients, subject.trained)
    return loss, gradients

def compile_step(subject, strategy):
    """A function that takes the samples of one step: workers read the parameters and return gradients, which the
    coordinator adds up. Nothing is out of date: all workers are waited for, and each where running statistics move."""
    places = []  # of the variables that have a gradient: a closure must not return None

    def traced(*part):
        loss, gradients = replica(subject, [part])
        places[:] = [place for place, g in enumerate(gradients) if g is not None]
        return loss, [gradients[place] for place in places]

    work = tf.function(traced, autograph=False, reduce_retracing=True)

    def step(parts):
        coordinator, waited = tf.distribute.coordinator_of, []
        for part in parts:
            waited.append(coordinator.schedule(work, args=part))
            if NORMS:  # workers would move running statistics in any order
                coordinator.join()
        coordinator.join()
        found = [value.fetch() for value in waited]
        loss = sum(one for one, _ in found)
        given = [sum(g) for g in zip(*(g for _, g in found))]
        gradients = dict(zip(places, given))
        if CLIP:
            given, _ = tf.clip_by_global_norm(given, CLIP)
        subject.optimizer.apply(given, [subject.trained[place] for place in places])
        return loss, merged(subject, gradients)

    return step


def merged(subject, gradients):
    """Those of a variable in parts put together. gradients: by place."""
    found, place = [], 0
    for name, variable in subject.p.items():
        if name not in FROZEN:
            own = [gradients.get(place + number) for number in range(len(parts_of(variable)))]
            place += len(own)
            found.append(None if own[0] is None else tf.concat(own, 0))
    return found

def summed(strategy, value):
    """The coordinator has added them up."""
    return value

def predict(strategy, subject, x):
    return model(subject.p, subject.norms, tf.constant(x), False)

def evaluate(strategy, subject, x, y, coefficient):
    """The loss of all samples after training."""
    return criterion(predict(strategy, subject, x), tf.constant(y), tf.constant(coefficient))

def parts_of(variable):
    """The variables that one is made of."""
    return getattr(variable, "variables", [variable])

def states(subject):
    """What the optimiser keeps, put together where a variable is in parts."""
    found = {}
    for variable in subject.optimizer.variables:
        name = re.sub("_part_[0-9]+", "", variable.path.split("/", 1)[-1]).replace("_0_", ".")
        name = "product" if name.startswith("variable") else name  # of Nadam
        found.setdefault(name, []).append(variable.value)
    return {name: tf.concat(parts, 0) if len(parts) > 1 else parts[0] for name, parts in found.items()}

def apart(strategy, variables):
    """There are no copies."""
    return np.float64(0)

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
VARIABLES = {'VIRTUAL_DEVICES': '2', 'ONLY': 'tf-parameter-server', 'TF_NUM_INTEROP_THREADS': '8'}
SYMPTOM = 'value'
SECONDS = 60.0  # for all ranks
GRACE = 3.0  # for the others once one has ended in another way than well: they wait for it, as a rule
ZERO_SIGNS = False
ARRAYS = {
    'x': array([[-0.6485388875007629, 1.0817162990570068, 0.9966933727264404], [1.2161710262298584, -1.692854404449463, -0.3387724757194519]], dtype='float32'),
    'y': array([[-0.6985854506492615, 0.6821634769439697], [-0.3663073182106018, -0.5061105489730835]], dtype='float32'),
    'coefficient': array([0.5, 0.5], dtype='float32'),
    'initial.l0.weight': array([[-0.43385761976242065, -0.08504302054643631, 0.4185446500778198], [-0.5103875994682312, -1.113685965538025, -0.7308099865913391]], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(2.754976040784614, dtype='float64'),
    'gradient.l0.weight': array([[-0.5199980286731866, 0.8406091958220456, 0.6773659794169152], [1.9679960877683598, -2.9437772154994155, -1.4802135227347146]], dtype='float64'),
    'prediction': array([[0.3908069120000533, -1.386136292034545], [-0.2685370944902007, 1.2549626926721376]], dtype='float64'),
    'loss.after': array(2.1438944083100946, dtype='float64'),
    'parameter.l0.weight': array([[-0.35478129928703184, -0.16417727190322418, 0.33943305239539623], [-0.5895757516850735, -1.034484480159246, -0.6516350851650525]], dtype='float64'),
    'state.iteration': array(1, dtype='int64'),
    'state.learning_rate': array(0.125, dtype='float64'),
    'state.l0.weight.momentum': array([[-0.051999802867318645, 0.08406091958220455, 0.06773659794169151], [0.19679960877683594, -0.29437772154994146, -0.14802135227347143]], dtype='float64'),
    'state.l0.weight.velocity': array([[0.0002703979498240004, 0.0007066238201005868, 0.00045882467007143723], [0.003873008601471573, 0.0086658242944935, 0.002191032072886715]], dtype='float64'),
    'apart.parameters': array(0.0, dtype='float64'),
}
ALLOWED = {
    'loss.0': array(9.826539748617854e-06, dtype='float64'),
    'gradient.l0.weight': array([[3.901914860453082e-06, 4.641530464507831e-06, 3.3161504947608235e-06], [6.008177593177627e-06, 9.667321857174109e-06, 4.7515934013245335e-06]], dtype='float64'),
    'prediction': array([[1.6255754984418867e-06, 4.373824869628681e-06], [1.667621672596184e-06, 4.74918392020817e-06]], dtype='float64'),
    'loss.after': array(8.442044532071994e-06, dtype='float64'),
    'parameter.l0.weight': array([[8.722116319937123e-07, 4.6829174355731945e-07, 8.686926528355877e-07], [1.272270070185267e-06, 2.0777042915591265e-06, 1.392234488107888e-06]], dtype='float64'),
    'state.iteration': array(0.0, dtype='float64'),
    'state.learning_rate': array(5.960464477539063e-08, dtype='float64'),
    'state.l0.weight.momentum': array([[3.9019148597869486e-07, 4.641530463841697e-07, 3.3161504940946895e-07], [6.00817759717443e-07, 9.667321857174108e-07, 6.182104882595246e-07]], dtype='float64'),
    'state.l0.weight.velocity': array([[9.651665090394615e-09, 1.2432133433246852e-08, 9.624784227362494e-09], [2.410519716116689e-08, 5.278469417810204e-08, 1.862597232047242e-08]], dtype='float64'),
    'apart.parameters': array(2.2250738585072014e-308, dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l0.weight': ('float32', (2, 3)), 'prediction': ('float32', (2, 2)), 'loss.after': ('float32', ()), 'parameter.l0.weight': ('float32', (2, 3)), 'state.iteration': ('int64', ()), 'state.learning_rate': ('float32', ()), 'state.l0.weight.momentum': ('float32', (2, 3)), 'state.l0.weight.velocity': ('float32', (2, 3)), 'apart.parameters': ('float64', ())}


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
