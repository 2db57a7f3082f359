"""ValueMismatch  prediction   tf-mirrored-sparse on 1 ranks vs one device

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
OPTIMIZER, OPTIONS = keras.optimizers.Adam, {'learning_rate': 0.03125, 'epsilon': 0.001, 'weight_decay': 0.0, 'amsgrad': False}


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

def variables(subject, given):
    return {name: tf.Variable(a, name not in FROZEN, name=name, dtype=DTYPE) for name, a in given.items()}

def optimizer_of(subject):
    return OPTIMIZER(**OPTIONS)

def normalisation():
    return keras.layers.BatchNormalization(1, 0.9, 1e-5, center=False, scale=False, dtype=DTYPE)

def feed(strategy, arrays, rows):
    """The samples in these rows, as even a split among the replicas as there is."""
    shares = np.array_split(rows, strategy.num_replicas_in_sync)

    def of(context):
        mine = shares[context.replica_id_in_sync_group]
        return tuple(tf.constant(arrays[name][mine]) for name in ("x", "y", "coefficient"))

    return [strategy.experimental_distribute_values_from_function(of)]

def gradient(subject, x, y, coefficient):
    """The loss of these samples, and its gradients by what is trained; those of embeddings are rows of them."""
    with tf.GradientTape() as tape:
        loss = criterion(model(subject.p, subject.norms, x, True), y, coefficient)
    return loss, tape.gradient(loss, subject.trained)

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
    return model(subject.p, subject.norms, tf.constant(x), False)

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
VARIABLES = {'VIRTUAL_DEVICES': '1'}
SYMPTOM = 'value'
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
    'prediction': array([[0.06577488409053732, 0.5908803171020065], [0.3912207312629723, 0.654712999215846], [-0.4643686038847118, 0.4025741947275257], [0.6546303638428197, -0.5694059253769628]], dtype='float64'),
    'loss.after': array(0.7593276054305902, dtype='float64'),
    'parameter.l0.weight': array([[0.1432727944799345, -0.5574319635251695, 0.2585332555996645], [0.18268594383475734, 0.7485579942995877, -0.2664901978410373], [0.9396420314463247, 0.8673846998170845, 0.7967309558097231]], dtype='float64'),
    'parameter.l2.weight': array([[-0.3890573196826944, 0.24327485483803324, 0.07422698991114693, -0.11577907602849585, 0.5442519770415527, -0.2844919320117388], [0.6421330060068409, -0.8897172895326951, 0.1665936305478486, -0.2481156890134061, 0.2367901356326876, 0.09014399974213201]], dtype='float64'),
    'parameter.l2.bias': array([0.10131382552714309, -0.08421544818280341], dtype='float64'),
    'state.iteration': array(1, dtype='int64'),
    'state.learning_rate': array(0.03125, dtype='float64'),
    'state.l0.weight.momentum': array([[0.07057568357696174, -0.08159065026675343, 0.01466308756401139], [-0.021024544909659864, 0.01777421988026716, 0.004879767977761142], [0.002281049791608432, -0.011119287749529468, 0.007953835611099582]], dtype='float64'),
    'state.l0.weight.velocity': array([[0.0004980927112355433, 0.0006657034210951681, 2.1500613690986572e-05], [4.4203148865830514e-05, 3.159228923520847e-05, 2.38121355167831e-06], [5.203188151796879e-07, 1.2363856005683625e-05, 6.3263500928395925e-06]], dtype='float64'),
    'state.l2.weight.momentum': array([[-0.010420192183908333, 0.06585849020753817, -0.02887724057852717, -0.028660731372700664, -0.012753597100577482, -0.024577621702490695], [0.007864319554100347, -0.03718689413639079, 0.01696289288073666, 0.01130141462485898, 0.02576377907163187, -0.0017788667378483766]], dtype='float64'),
    'state.l2.weight.velocity': array([[1.0858040514958443e-05, 0.00043373407324164074, 8.338950234301373e-05, 8.214375228181093e-05, 1.6265423900385857e-05, 6.0405948855074246e-05], [6.184752204900517e-06, 0.00013828650955111378, 2.877397348833468e-05, 1.277219725229766e-05, 6.637723120518573e-05, 3.164366871023329e-07]], dtype='float64'),
    'state.l2.bias.momentum': array([-0.057780638487323434, 0.044588070344757105], dtype='float64'),
    'state.l2.bias.velocity': array([0.0003338602184002766, 0.00019880960170690106], dtype='float64'),
    'apart.parameters': array(0.0, dtype='float64'),
}
ALLOWED = {
    'loss.0': array(2.0103325638773903e-06, dtype='float64'),
    'gradient.l0.weight': array([[2.2484824922573923e-06, 3.2632869159721963e-06, 8.405945612308821e-07], [9.655835506719694e-07, 1.711087027064973e-06, 7.31647775505442e-07], [6.136168871967505e-07, 9.382749305720167e-07, 6.073875307459985e-07]], dtype='float64'),
    'gradient.l2.weight': array([[8.35883794012472e-07, 2.7991586573131863e-06, 1.2461638684108083e-06, 2.250361188866002e-06, 1.3649028765587054e-06, 1.4314935388455935e-06], [7.866955832215908e-07, 1.171843178222179e-06, 8.937208190932413e-07, 9.355976125083936e-07, 2.0403843101024813e-06, 8.730404460344243e-07]], dtype='float64'),
    'gradient.l2.bias': array([2.0355250065995957e-06, 2.701208386215991e-06], dtype='float64'),
    'prediction': array([[1.7279745241424226e-06, 3.135905893825533e-06], [1.7679432595997992e-06, 2.5714311346789623e-06], [1.7092516165744272e-06, 1.888978386662494e-06], [2.731063228419816e-06, 2.74114895444851e-06]], dtype='float64'),
    'loss.after': array(1.6775140725704825e-06, dtype='float64'),
    'parameter.l0.weight': array([[4.456853655796342e-07, 1.2397439418483001e-06, 6.875498692303603e-07], [5.393083517778646e-07, 1.184011412544548e-06, 7.109683038333064e-07], [1.8124527739758998e-06, 1.8544111196355968e-06, 1.5649623347117705e-06]], dtype='float64'),
    'parameter.l2.weight': array([[8.848632902299191e-07, 5.414567089654932e-07, 2.637284674143923e-07, 3.565744275517132e-07, 1.0790789304523164e-06, 6.477746587980919e-07], [1.3807910002585135e-06, 1.1484536571991432e-06, 4.848287090602939e-07, 6.450745040284074e-07, 4.706466459400757e-07, 4.370420818381559e-07]], dtype='float64'),
    'parameter.l2.bias': array([2.120772692761596e-07, 1.809251602161858e-07], dtype='float64'),
    'state.iteration': array(0.0, dtype='float64'),
    'state.learning_rate': array(1.4901161193847656e-08, dtype='float64'),
    'state.l0.weight.momentum': array([[2.248482493367615e-07, 3.2632869190808205e-07, 8.405945615084378e-08], [9.655835517821924e-08, 1.7110870280086627e-07, 7.316477759078978e-08], [6.136168877241064e-08, 9.382749309328392e-08, 6.073875311900877e-08]], dtype='float64'),
    'state.l0.weight.velocity': array([[3.0267107265441605e-09, 5.007642195936808e-09, 7.858773253227676e-10], [8.823159012920244e-10, 1.117266773938217e-09, 7.00226884025869e-10], [6.790435255161443e-10, 7.814808135889227e-10, 6.983169496435274e-10]], dtype='float64'),
    'state.l2.weight.momentum': array([[8.358837941512499e-08, 2.7991586588674986e-07, 1.1567569001374992e-07, 2.25036118925458e-07, 1.36490287678075e-07, 1.4314935389011044e-07], [7.866955834436355e-08, 1.5294710494280358e-07, 8.937208194818193e-08, 9.355976128137049e-08, 2.0403843101579922e-07, 8.730404462668773e-08]], dtype='float64'),
    'state.l2.weight.velocity': array([[5.626549842040108e-10, 3.480146957675272e-09, 8.448532336878002e-10, 1.5148878542794498e-09, 7.174556235122093e-10, 9.679587519009407e-10], [5.325660725997718e-10, 1.0308843215768609e-09, 6.366569647735253e-10, 5.927553984560888e-10, 1.3043955141401114e-09, 4.858970463949905e-10]], dtype='float64'),
    'state.l2.bias.momentum': array([2.0355250056559062e-07, 2.701208386604569e-07], dtype='float64'),
    'state.l2.bias.velocity': array([2.0992790728123396e-09, 2.3140338063864077e-09], dtype='float64'),
    'apart.parameters': array(2.2250738585072014e-308, dtype='float64'),
}
TYPES = {'loss.0': ('float32', ()), 'gradient.l0.weight': ('float32', (3, 3)), 'gradient.l2.weight': ('float32', (2, 6)), 'gradient.l2.bias': ('float32', (2,)), 'prediction': ('float32', (4, 2)), 'loss.after': ('float32', ()), 'parameter.l0.weight': ('float32', (3, 3)), 'parameter.l2.weight': ('float32', (2, 6)), 'parameter.l2.bias': ('float32', (2,)), 'state.iteration': ('int64', ()), 'state.learning_rate': ('float32', ()), 'state.l0.weight.momentum': ('float32', (3, 3)), 'state.l0.weight.velocity': ('float32', (3, 3)), 'state.l2.weight.momentum': ('float32', (2, 6)), 'state.l2.weight.velocity': ('float32', (2, 6)), 'state.l2.bias.momentum': ('float32', (2,)), 'state.l2.bias.velocity': ('float32', (2,)), 'apart.parameters': ('float64', ())}


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
