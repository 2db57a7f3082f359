"""Rejection  the run   tf-fit-mirrored-unbuilt on 2 ranks vs one device

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
BATCHES = [(0, 4)]  # samples of each step: the first, and the one after the last
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
OPTIMIZER, OPTIONS = keras.optimizers.SGD, {'learning_rate': 0.125, 'momentum': 0.0, 'weight_decay': 0.0, 'nesterov': False}


def model(p, norms, x, training):
    l0 = tf.nn.embedding_lookup(p["l0.weight"], x)
    l1 = tf.reshape(l0, (-1, 6))
    l2 = tf.matmul(l1, p["l2.weight"], transpose_b=True) + p["l2.bias"]
    return l2


def criterion(outputs, y, coefficient):
    """The sum of the samples' losses, each times its coefficient."""
    return tf.reduce_sum(tf.reduce_mean((outputs - y) ** 2, axis=1) * coefficient)


SHARDS = 1  # of the samples of a batch, whose own statistics batch normalisation uses on one device
FIRST = True  # running statistics are those of the first share; else each share moves them, one after the other

def strategy_of(rank, world):
    return tf.distribute.MirroredStrategy(DEVICES, cross_device_ops=tf.distribute.ReductionToOneDevice())

class Fitted(keras.Model):
    """The model for Keras: it has the weights and the layers of batch normalisation."""

    def __init__(self, norms, given):
        super().__init__(dtype=DTYPE)
        self.norms = norms
        self.kept = {
            name: self.add_weight(a.shape, keras.initializers.Constant(a), trainable=name not in FROZEN, name=name)
            for name, a in given.items()
        }

    def call(self, x, training=False):
        return model({name: kept.value for name, kept in self.kept.items()}, self.norms, x, training)


def variables(subject, given):
    subject.model = Fitted(subject.norms, given)
    subject.prefix = f"{subject.model.name}_"
    return {name: kept.value for name, kept in subject.model.kept.items()}

def optimizer_of(subject):
    """Keras' own, which does the clipping, too."""
    made = OPTIMIZER(**OPTIONS, global_clipnorm=CLIP)
    subject.model.compile(made, LOSS)
    return made

def normalisation():
    return keras.layers.BatchNormalization(
        1, 0.9, 1e-5, center=False, scale=False, synchronized=True, dtype=DTYPE
    )

def feed(strategy, arrays, rows):
    return [tuple(arrays[name][rows] for name in ("x", "y", "coefficient"))]

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
    """A function that fits one batch. Gradients are worked out before the first one: `fit` shows none."""

    subject.first = None

    def step(parts):
        x, y, coefficient = parts[0]
        if subject.first is None:
            subject.first = gradients_of(subject, strategy, parts[0])
        history = subject.model.fit(x, y, len(x), sample_weight=coefficient, shuffle=False, verbose=0)
        return tf.constant(history.history["loss"][0], DTYPE), subject.first

    return step


def build(subject, x, y, coefficient):
    """What `fit` builds of a batch that the replicas share has to be even: one sample, outside of it, is enough."""
    subject.model.test_on_batch(x[:1], y[:1], coefficient[:1])


def gradients_of(subject, strategy, given):
    """The gradients of one batch, all replicas' together; running statistics are put back."""
    kept = [np.asarray(value) for value in subject.buffers.values()]
    _, found = strategy.run(lambda parts: replica(subject, parts), args=([tuple(map(tf.constant, given))],))
    for buffer, value in zip(subject.buffers.values(), kept):
        buffer.assign(value)
    return [g if g is None else strategy.reduce("MEAN", g, axis=None) for g in found]

def summed(strategy, value):
    """Keras has added them up."""
    return value

def predict(strategy, subject, x):
    return subject.model.predict(x, len(x), verbose=0)

def evaluate(strategy, subject, x, y, coefficient):
    """The loss of all samples after training."""
    return tf.constant(subject.model.evaluate(x, y, len(x), sample_weight=coefficient, verbose=0), DTYPE)

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
SYMPTOM = 'rejected'
SECONDS = 60.0  # for all ranks
GRACE = 3.0  # for the others once one has ended in another way than well: they wait for it, as a rule
ZERO_SIGNS = False
ARRAYS = {
    'x': array([[0, 2], [0, 1], [0, 0], [1, 1]], dtype='int64'),
    'y': array([[0.862968385219574, 0.5159445405006409], [1.6044130325317383, -0.8188617825508118], [0.42254796624183655, 0.21388675272464752], [-0.2717351019382477, -0.23796533048152924]], dtype='float32'),
    'coefficient': array([0.25, 0.25, 0.25, 0.25], dtype='float32'),
    'initial.l0.weight': array([[0.1731824278831482, -0.5875157713890076, 0.2842392325401306], [0.15552186965942383, 0.7750877737998962, -0.24752838909626007], [0.9527373909950256, 0.8430543541908264, 0.8190909028053284]], dtype='float32'),
    'initial.l2.weight': array([[-0.41303151845932007, 0.2730928957462311, 0.04606153070926666, -0.1439235508441925, 0.5192111134529114, -0.3121793270111084], [0.6644207835197449, -0.9185179471969604, 0.19293312728405, -0.2236982136964798, 0.26462361216545105, 0.07889372855424881]], dtype='float32'),
    'initial.l2.bias': array([0.0716855600476265, -0.05503518134355545], dtype='float32'),
}
EXPECTED = {
    'loss.0': array(0.9151527507086231, dtype='float64'),
    'gradient.l0.weight': array([[0.7057568357696176, -0.8159065026675345, 0.14663087564011393], [-0.2102454490965987, 0.1777421988026716, 0.04879767977761143], [0.022810497916084325, -0.1111928774952947, 0.07953835611099583]], dtype='float64'),
    'gradient.l2.weight': array([[-0.10420192183908335, 0.6585849020753819, -0.28877240578527175, -0.2866073137270067, -0.12753597100577485, -0.245776217024907], [0.07864319554100349, -0.371868941363908, 0.16962892880736663, 0.11301414624858983, 0.25763779071631876, -0.01778866737848377]], dtype='float64'),
    'gradient.l2.bias': array([-0.5778063848732344, 0.44588070344757114], dtype='float64'),
    'prediction': array([[0.16732850205796038, 0.4528083400665457], [0.49378218865747847, 0.5250772383166041], [-0.3047098118259456, 0.3024247486870766], [0.6486102198388274, -0.5806775917473537]], dtype='float64'),
    'loss.after': array(0.6286005059816613, dtype='float64'),
    'parameter.l0.weight': array([[0.084962823411946, -0.4855274585555658, 0.2659103730851164], [0.18180255079649865, 0.7528699989495623, -0.2536280990684615], [0.9498860787555151, 0.8569534638777383, 0.8091486082914539]], dtype='float64'),
    'parameter.l2.weight': array([[-0.40000627822943463, 0.19076978298680836, 0.08215808143242563, -0.10809763662831667, 0.5351531098286333, -0.281457299882995], [0.6545903840771194, -0.872034329526472, 0.17172951118312915, -0.23782498197755353, 0.2324188883259112, 0.08111731197655928]], dtype='float64'),
    'parameter.l2.bias': array([0.1439113581567808, -0.11077026927450184], dtype='float64'),
    'state.iteration': array(1, dtype='int64'),
    'state.learning_rate': array(0.125, dtype='float64'),
    'apart.parameters': array(0.0, dtype='float64'),
}
ALLOWED = {
    'loss.0': array(2.0103325638773903e-06, dtype='float64'),
    'gradient.l0.weight': array([[2.2484824922573923e-06, 3.2632869159721963e-06, 8.405945612308821e-07], [9.655835506719694e-07, 1.711087027064973e-06, 7.31647775505442e-07], [6.136168871967505e-07, 9.382749305720167e-07, 6.073875307459985e-07]], dtype='float64'),
    'gradient.l2.weight': array([[8.35883794012472e-07, 2.7991586573131863e-06, 1.2461638684108083e-06, 2.250361188866002e-06, 1.3649028765587054e-06, 1.4314935388455935e-06], [7.866955832215908e-07, 1.171843178222179e-06, 8.937208190932413e-07, 9.355976125083936e-07, 2.0403843101024813e-06, 8.730404460344243e-07]], dtype='float64'),
    'gradient.l2.bias': array([2.0355250065995957e-06, 2.701208386215991e-06], dtype='float64'),
    'prediction': array([[1.8167478819139503e-06, 2.3516991811624988e-06], [2.1942637599837913e-06, 2.5985819982969686e-06], [1.5690113013902829e-06, 1.6597509559082027e-06], [2.2551489247190232e-06, 2.999194050676271e-06]], dtype='float64'),
    'loss.after': array(1.078402131975441e-06, dtype='float64'),
    'parameter.l0.weight': array([[4.2277665934011066e-07, 1.213005709633358e-06, 6.876289440147214e-07], [5.735202812662644e-07, 1.325064144589208e-06, 6.730830380658681e-07], [2.0344885060175753e-06, 1.7972433751843656e-06, 1.446611960244727e-06]], dtype='float64'),
    'parameter.l2.weight': array([[8.132161232399347e-07, 5.880130221617551e-07, 3.663119027946108e-07, 4.359117892309152e-07, 1.0925232875121568e-06, 5.426670293371325e-07], [1.2256037802291016e-06, 1.420652703288448e-06, 5.149077100574224e-07, 5.217673441932227e-07, 7.720661501600629e-07, 3.25669840215287e-07]], dtype='float64'),
    'parameter.l2.bias': array([4.2612338344642135e-07, 4.803741676554617e-07], dtype='float64'),
    'state.iteration': array(0.0, dtype='float64'),
    'state.learning_rate': array(5.960464477539063e-08, dtype='float64'),
    'apart.parameters': array(2.2250738585072014e-308, dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l0.weight': ('float32', (3, 3)), 'gradient.l2.weight': ('float32', (2, 6)), 'gradient.l2.bias': ('float32', (2,)), 'prediction': ('float32', (4, 2)), 'loss.after': ('float32', ()), 'parameter.l0.weight': ('float32', (3, 3)), 'parameter.l2.weight': ('float32', (2, 6)), 'parameter.l2.bias': ('float32', (2,)), 'state.iteration': ('int64', ()), 'state.learning_rate': ('float32', ()), 'apart.parameters': ('float64', ())}


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
