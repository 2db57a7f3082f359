"""ValueMismatch  apart.ranges   tfmot-mirrored on 2 ranks vs one device

ran with numpy 2.1.3, tensorflow-model-optimization 0.8.1, tf-keras 2.19.0, tensorflow-cpu|tensorflow 2.19.1 (environment tfmot)
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['tensorflow', 'tf_keras', 'tensorflow_model_optimization']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import os

import numpy as np
import tensorflow as tf
import tensorflow_model_optimization as tfmot
import tf_keras

DTYPE = "float32"
BATCHES = [(0, 4)]  # samples of each step: the first, and the one after the last
FROZEN = []
OPTIONS = {'learning_rate': 0.125, 'momentum': 0.0, 'nesterov': False}
ORDERS = {'l0.weight': (1, 0)}  # axes of Keras' kernels that make them parameters
NAMES = {"kernel": "weight", "gamma": "weight", "beta": "bias"}
DEVICES = [f"/cpu:{number}" for number in range(int(os.environ.get("VIRTUAL_DEVICES", "1")))]
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * len(DEVICES)
)
tf_keras.backend.clear_session()  # so that layers have the same names each time
tf_keras.backend.set_floatx(DTYPE)


def model():
    """The layers, made quantisation-aware: fake quantisation where tfmot's default 8-bit scheme puts it."""
    x = tf_keras.Input((3,), name="x")
    l0 = tf_keras.layers.Dense(2, use_bias=bool(1), name="l0")(x)
    return tfmot.quantization.keras.quantize_model(tf_keras.Model(x, l0))


def criterion(outputs, y, coefficient):
    """The sum of the samples' losses, each times its coefficient."""
    return tf.reduce_sum(tf.reduce_mean((outputs - y) ** 2, axis=1) * coefficient)


SHARDS = 1  # of a batch, each of which has its own range, and its own statistics for batch normalisation

def strategy_of(rank, world):
    """One object for the whole life of the process: the collectives of a second one would have the first one's keys."""
    if not hasattr(tf.distribute, "kept"):
        tf.distribute.kept = tf.distribute.MirroredStrategy(DEVICES)
    return tf.distribute.kept

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
        loss = criterion(subject.model(x, training=True), y, coefficient)
    return loss, tape.gradient(loss, subject.trained)

def update(subject, loss, gradients):
    """One step of the optimiser, on each replica; it adds up the replicas' gradients. Returns what they had."""
    subject.optimizer.apply_gradients(zip(gradients, subject.trained))
    return loss, gradients


class Subject:
    """What is trained, under a strategy. p: parameters by name; buffers: running statistics, and the ranges of
    quantisers, by name."""

    def __init__(self, strategy, arrays):
        with strategy.scope():
            self.model = model()
            self.optimizer = tf_keras.optimizers.SGD(**OPTIONS)
        self.p, self.buffers = {}, {}
        for layer in self.model.layers:
            own = getattr(layer, "layer", layer).name
            for variable in layer.weights:
                name = variable.name.split("/")[-1].split(":")[0]
                if name.endswith(("_min", "_max")) or name.startswith("moving_"):
                    self.buffers[f"{own}.{name}"] = variable
                elif name != "optimizer_step":
                    self.p[f"{own}.{NAMES.get(name, name)}"] = variable
        for name, variable in self.p.items():
            given = arrays[f"initial.{name}"]
            variable.assign(np.transpose(given, np.argsort(ORDERS[name])) if name in ORDERS else given)
        with strategy.scope():
            self.optimizer.build(self.trained)

    @property
    def trained(self):
        return [variable for name, variable in self.p.items() if name not in FROZEN]


def train(rank, world, arrays):
    """All that is compared, by name."""
    arrays = {name: a.astype(DTYPE) if a.dtype.kind == "f" else a for name, a in arrays.items()}
    if arrays["x"].ndim == 4:
        arrays["x"] = np.ascontiguousarray(np.transpose(arrays["x"], (0, 2, 3, 1)))
    strategy = strategy_of(rank, world)
    subject = Subject(strategy, arrays)

    def step(parts):
        def mine(x, y, coefficient):
            return update(subject, *gradient(subject, x, y, coefficient))

        return strategy.run(mine, args=parts)

    compiled = tf.function(step, autograph=False)
    return once(strategy, subject, compiled, lambda x: subject.model(x, training=False), arrays)


def once(strategy, subject, step, predict, arrays):
    """All that is compared, by name."""
    found = {}
    for number, (first, last) in enumerate(BATCHES):
        (parts,) = feed(strategy, arrays, np.arange(first, last))
        loss, gradients = step(parts)
        found[f"loss.{number}"] = strategy.reduce("SUM", loss, axis=None)
        if number == 0:
            named = zip((name for name in subject.p if name not in FROZEN), gradients)
            found |= {f"gradient.{name}": strategy.reduce("SUM", value, axis=None) for name, value in named}
    found["prediction"] = predict(tf.constant(arrays["x"]))
    found["loss.after"] = criterion(found["prediction"], tf.constant(arrays["y"]), tf.constant(arrays["coefficient"]))
    found |= {f"parameter.{name}": variable for name, variable in subject.p.items()}
    found |= {f"buffer.{name}": variable for name, variable in subject.buffers.items()}
    found["apart.parameters"] = apart(strategy, subject.p.values())
    found["apart.ranges"] = apart(strategy, [v for name, v in subject.buffers.items() if ".moving_" not in name])
    found = {name: np.asarray(tf.convert_to_tensor(value)) for name, value in found.items()}
    return {name: np.transpose(a, order_of(name)) if order_of(name) else a for name, a in found.items()}


def order_of(name):
    """The axes of a parameter or its gradient among those of what Keras has; None where they are the same."""
    kind, _, own = name.partition(".")
    return ORDERS.get(own) if kind in ("parameter", "gradient") else None


def apart(strategy, variables):
    """The greatest difference between what two replicas have of the same variable."""
    copies = [[np.asarray(copy) for copy in strategy.experimental_local_results(v)] for v in variables]
    gaps = [np.abs(copy - all_of[0]) for all_of in copies for copy in all_of]
    return np.float64(max((gap.max() for gap in gaps if gap.size), default=0))


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
    'x': array([[-0.6485388875007629, 1.0817162990570068, 0.9966933727264404], [1.2161710262298584, -1.692854404449463, -0.3387724757194519], [0.12324532866477966, 1.0878499746322632, -1.3261464834213257], [0.1754656732082367, 0.9930110573768616, -0.9217540621757507]], dtype='float32'),
    'y': array([[-0.6985854506492615, 0.6821634769439697], [-0.3663073182106018, -0.5061105489730835], [0.7978782057762146, -1.4905258417129517], [1.7501916885375977, 1.1709381341934204]], dtype='float32'),
    'coefficient': array([0.25, 0.25, 0.25, 0.25], dtype='float32'),
    'initial.l0.weight': array([[-0.43385761976242065, -0.08504302054643631, 0.4185446500778198], [-0.5103875994682312, -1.113685965538025, -0.7308099865913391]], dtype='float32'),
    'initial.l0.bias': array([0.06908013671636581, -0.33030450344085693], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(2.913018854946878, dtype='float64'),
    'gradient.l0.weight': array([[-0.39692220091819763, -0.5366047024726868, 1.3377532958984375], [0.8723400235176086, -1.6917178630828857, -0.6041191816329956]], dtype='float64'),
    'gradient.l0.bias': array([-0.6058920031958546, -0.5283508375105204], dtype='float64'),
    'prediction': array([[0.6112540767641551, -1.504625419727151], [-0.37615635493178773, 0.705293165497102], [-0.2821172661988408, -0.47019544366473465], [-0.18807817746589386, -0.6582736211306285]], dtype='float64'),
    'loss.after': array(2.159461411134492, dtype='float64'),
    'parameter.l0.weight': array([[-0.38424234464764595, -0.017967432737350464, 0.25132548809051514], [-0.6194301024079323, -0.9022212326526642, -0.6552950888872147]], dtype='float64'),
    'parameter.l0.bias': array([0.14481663711584764, -0.2642606487520419], dtype='float64'),
    'buffer.quantize_layer.quantize_layer_min': array(-1.692854404449463, dtype='float64'),
    'buffer.quantize_layer.quantize_layer_max': array(1.2161710262298584, dtype='float64'),
    'buffer.l0.kernel_min': array(-1.113685965538025, dtype='float64'),
    'buffer.l0.kernel_max': array(1.113685965538025, dtype='float64'),
    'buffer.l0.post_activation_min': array(-5.99539467683138, dtype='float64'),
    'buffer.l0.post_activation_max': array(5.9945891366193536, dtype='float64'),
    'apart.parameters': array(0.0, dtype='float64'),
    'apart.ranges': array(0.0, dtype='float64'),
}
ALLOWED = {
    'loss.0': array(4.584815020372913e-06, dtype='float64'),
    'gradient.l0.weight': array([[2.8118716244307507e-06, 3.832151747928947e-06, 6.359936378430575e-06], [4.230661403425984e-06, 7.959231311360782e-06, 4.341182318512438e-06]], dtype='float64'),
    'gradient.l0.bias': array([3.2506650342194604e-06, 4.588937561380779e-06], dtype='float64'),
    'prediction': array([[2.4806349098459266e-06, 4.604122232405404e-06], [1.7278866811370583e-06, 2.819545440002887e-06], [1.6386564862759186e-06, 2.155883535389452e-06], [1.2336264163867237e-06, 2.5171562497234337e-06]], dtype='float64'),
    'loss.after': array(3.4124152945343604e-06, dtype='float64'),
    'parameter.l0.weight': array([[1.1487260186404669e-06, 6.620753410652158e-07, 1.197506832695261e-06], [1.8134867295627188e-06, 2.4243065602780334e-06, 1.8601102075299636e-06]], dtype='float64'),
    'parameter.l0.bias': array([4.956114539688434e-07, 8.831114485807494e-07], dtype='float64'),
    'buffer.quantize_layer.quantize_layer_min': array(8.072158834693255e-07, dtype='float64'),
    'buffer.quantize_layer.quantize_layer_max': array(5.799155360364239e-07, dtype='float64'),
    'buffer.l0.kernel_min': array(5.310468509378552e-07, dtype='float64'),
    'buffer.l0.kernel_max': array(5.310468509378552e-07, dtype='float64'),
    'buffer.l0.post_activation_min': array(3.008300429164031e-06, dtype='float64'),
    'buffer.l0.post_activation_max': array(3.8191754264379484e-06, dtype='float64'),
    'apart.parameters': array(2.2250738585072014e-308, dtype='float64'),
    'apart.ranges': array(2.2250738585072014e-308, dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l0.weight': ('float32', (2, 3)), 'gradient.l0.bias': ('float32', (2,)), 'prediction': ('float32', (4, 2)), 'loss.after': ('float32', ()), 'parameter.l0.weight': ('float32', (2, 3)), 'parameter.l0.bias': ('float32', (2,)), 'buffer.quantize_layer.quantize_layer_min': ('float32', ()), 'buffer.quantize_layer.quantize_layer_max': ('float32', ()), 'buffer.l0.kernel_min': ('float32', ()), 'buffer.l0.kernel_max': ('float32', ()), 'buffer.l0.post_activation_min': ('float32', ()), 'buffer.l0.post_activation_max': ('float32', ()), 'apart.parameters': ('float64', ()), 'apart.ranges': ('float64', ())}


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
