"""ValueMismatch  loss.0   keras-fit-data on 2 ranks vs one device

ran with numpy 2.4.6, keras 3.15.1, jax 0.10.2
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['jax', 'jax.numpy', 'keras']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import os

os.environ["KERAS_BACKEND"] = "jax"  # read when Keras is imported

import jax
import jax.numpy as jnp
import keras
import numpy as np

jax.config.update("jax_enable_x64", True)
DTYPE = "float64"
BATCHES = [(0, 4)]  # samples of each step: the first, and the one after the last
FROZEN = []
STATISTICS = {}  # of batch normalisation, and how many numbers each has
CLIP = None
keras.config.set_floatx(DTYPE)
keras.config.set_dtype_policy(DTYPE)  # an earlier program's is kept otherwise
LOSS = keras.losses.MeanSquaredError(reduction="sum")  # of the dtype that is set when it is made
OPTIMIZER, OPTIONS = keras.optimizers.SGD, {'learning_rate': 0.125, 'momentum': 0.0, 'weight_decay': 0.0, 'nesterov': False}


def model(p, b, x, training):
    l0 = x @ p["l0.weight"].T + p["l0.bias"]
    return l0


def criterion(outputs, y, coefficient):
    """The sum of the samples' losses, each times its coefficient."""
    return jnp.sum(jnp.mean((outputs - y) ** 2, axis=1) * coefficient)


class Subject(keras.Model):
    """The model for Keras: its weights and its running statistics."""

    def __init__(self, given):
        super().__init__(dtype=DTYPE, name="subject")
        self.kept = {
            name: self.add_weight(a.shape, keras.initializers.Constant(a), trainable=name not in FROZEN, name=name)
            for name, a in given.items()
        }
        self.statistics = {
            name: self.add_weight((size,), "ones" if name.endswith("variance") else "zeros", trainable=False, name=name)
            for name, size in STATISTICS.items()
        }
        self.built = True

    def call(self, x, training=False):
        p, b = ({name: v.value for name, v in kept.items()} for kept in (self.kept, self.statistics))
        outputs = model(p, b, x, training)
        for name, variable in self.statistics.items():
            variable.assign(b[name])
        return outputs


def distribution_of(shapes):
    """A copy of each variable on each device, and a share of the samples."""
    devices = keras.distribution.list_devices()
    return keras.distribution.DataParallel(devices=devices, auto_shard_dataset=False)

def compile_model(subject):
    """The optimiser does the clipping, too."""
    subject.compile(OPTIMIZER(**OPTIONS, global_clipnorm=CLIP), LOSS)

def feed(arrays):
    """As it is: `fit` distributes the samples."""
    return arrays

def compile_step(subject):
    """A function that fits one batch. Gradients are worked out before the first one: `fit` shows none."""
    subject.first = None

    def step(parts):
        ((x, y, coefficient),) = parts
        if subject.first is None:
            groups = subject.trainable_variables, subject.non_trainable_variables
            before = [[variable.value for variable in group] for group in groups]
            _, found = gradient(subject, *before, *map(jnp.asarray, parts[0]))
            subject.first = [np.asarray(value) for value in found]
        history = subject.fit(x, y, len(x), sample_weight=coefficient, shuffle=False, verbose=0)
        return np.asarray(history.history["loss"][0], DTYPE), subject.first

    return step

def predict(subject, x):
    return subject.predict(x, len(x), verbose=0)

def evaluate(subject, x, y, coefficient):
    """The loss of all samples after training."""
    return np.asarray(subject.evaluate(x, y, len(x), sample_weight=coefficient, verbose=0), DTYPE)


def gradient(subject, trained, others, x, y, coefficient):
    """The loss of these samples with the other variables after them, and its gradients by what is trained."""

    def loss_of(trained):
        outputs, after = subject.stateless_call(trained, others, x, training=True)
        return criterion(outputs, y, coefficient), after

    return jax.value_and_grad(loss_of, has_aux=True)(trained)


def step_of(subject):
    """A function of the values of variables and of the samples of one step."""

    def step(trained, others, kept, parts):
        """The loss, the gradients, and all variables after the optimiser's step."""
        loss, total = 0.0, None
        for number, (x, y, coefficient) in enumerate(parts):
            (part, others), g = gradient(subject, trained, others, x, y, coefficient)
            loss = loss + part
            total = g if total is None else [a + b for a, b in zip(total, g)]
        first = total
        trained, kept = subject.optimizer.stateless_apply(kept, total, trained)
        return loss, first, trained, others, kept

    return step


def train(rank, world, arrays):
    """All that is compared, by name. One process drives all devices."""
    subject = subject_of(arrays)
    return once(subject, compile_step(subject), arrays)


def subject_of(arrays):
    """What is trained, on the devices that it is distributed over."""
    given = {name.removeprefix("initial."): a for name, a in arrays.items() if name.startswith("initial.")}
    keras.distribution.set_distribution(distribution_of({name: a.shape for name, a in given.items()}))
    subject = Subject(given)
    compile_model(subject)
    subject.optimizer.build(subject.trainable_variables)
    return subject


def once(subject, step, arrays):
    """All that is compared, by name."""
    found = {}
    for number, (first, last) in enumerate(BATCHES):
        rows = np.array_split(np.arange(first, last), 1)
        parts = [feed([arrays[name][mine] for name in ("x", "y", "coefficient")]) for mine in rows if len(mine)]
        loss, gradients = step(parts)
        found[f"loss.{number}"] = loss
        if number == 0:
            named = zip((name for name in subject.kept if name not in FROZEN), gradients)
            found |= {f"gradient.{name}": value for name, value in named}
    found["prediction"] = predict(subject, arrays["x"])
    found["loss.after"] = evaluate(subject, arrays["x"], arrays["y"], arrays["coefficient"])
    found |= {f"parameter.{name}": variable.value for name, variable in subject.kept.items()}
    found |= {f"buffer.{name}": variable.value for name, variable in subject.statistics.items()}
    for variable in subject.optimizer.variables:
        name = variable.path.split("/", 1)[-1].removeprefix("subject_")
        found[f"state.{'product' if name.startswith('variable') else name}"] = variable.value  # the product of Nadam
    return {name: np.asarray(value) for name, value in found.items()}


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
VARIABLES = {'KERAS_BACKEND': 'jax', 'XLA_FLAGS': '--xla_force_host_platform_device_count=2 --xla_cpu_multi_thread_eigen=false'}
SYMPTOM = 'value'
SECONDS = 60.0  # for all ranks
GRACE = 3.0  # for the others once one has ended in another way than well: they wait for it, as a rule
ZERO_SIGNS = False
ARRAYS = {
    'x': array([[-0.07392660212951147, 0.5207463822508197, -0.10361593866749964, 1.1209682662231941], [-0.18254797315295265, -1.6482608641946637, 1.4406445769237657, 2.189499728984279], [0.3996527204480886, 0.35533930274118514, 0.594950911710523, -0.1624645913138716], [-0.15216838320247075, -0.8035165934617411, -0.5753952899561614, -0.42388273550213906]], dtype='float64'),
    'y': array([[0.14173182389114117, -0.6360126268013295], [1.519156872735004, -0.5322446808938379], [0.044844617451845085, -0.2542351742863221], [-1.5303775966454343, 0.4368699496793447]], dtype='float64'),
    'coefficient': array([1.0, 1.0, 1.0, 1.0], dtype='float64'),
    'initial.l0.weight': array([[-0.08551455828811057, -0.2271909364702755, -0.39524677646285195, -0.09762027588466443], [-0.11066694521846966, -0.422680705304764, 0.16371946413293234, 0.6375465291565193]], dtype='float64'),
    'initial.l0.bias': array([0.08082893371322926, 0.0223013558293264], dtype='float64'),
}
EXPECTED = {
    'loss.0': array(8.865534866144312, dtype='float64'),
    'gradient.l0.weight': array([[-0.08285764696443854, 1.1192051969953556, -3.9850812162256055, -5.111757033621233], [-0.5199055440421608, -3.8229518733657057, 4.352252578536376, 7.805830427183234]], dtype='float64'),
    'gradient.l0.bias': array([-0.2954032638858144, 3.7006903128491024], dtype='float64'),
    'prediction': array([[0.5283234243724448, -0.7478541633217506], [2.070046701647623, -1.81125562385383], [-0.06946113549925738, -0.6102543968582461], [0.13548496381110486, -0.11549934597299616]], dtype='float64'),
    'loss.after': array(2.6606677958867215, dtype='float64'),
    'parameter.l0.weight': array([[-0.07515735241755575, -0.36709158609469494, 0.10288837556534874, 0.5413493533179896], [-0.04567875221319956, 0.055188278865949236, -0.38031210818411465, -0.3381822742413849]], dtype='float64'),
    'parameter.l0.bias': array([0.11775434169895606, -0.4402849332768114], dtype='float64'),
    'state.iteration': array(1, dtype='int32'),
    'state.learning_rate': array(0.125, dtype='float64'),
}
ALLOWED = {
    'loss.0': array(1.0735015975362245e-13, dtype='float64'),
    'gradient.l0.weight': array([[2.0834762934431373e-14, 3.474483385179226e-14, 7.459373671301393e-14, 1.2888513104203025e-13], [2.3554407796703956e-14, 7.444973692948561e-14, 8.557799142975176e-14, 1.0996166681847729e-13]], dtype='float64'),
    'gradient.l0.bias': array([2.1578652876895366e-14, 7.78938605286764e-14], dtype='float64'),
    'prediction': array([[2.5338241215753183e-14, 2.8197758939649154e-14], [5.335291915078211e-14, 6.378120753667622e-14], [1.1941080245047481e-14, 2.274647527831974e-14], [1.6995724795353256e-14, 1.1648903482684321e-14]], dtype='float64'),
    'loss.after': array(1.1427362860051346e-13, dtype='float64'),
    'parameter.l0.weight': array([[2.1761768852868677e-15, 3.434667293773237e-15, 8.529078221966335e-15, 1.291531268893741e-14], [2.4830615361299374e-15, 8.486712025460318e-15, 1.0107747623941167e-14, 1.2734864073708061e-14]], dtype='float64'),
    'parameter.l0.bias': array([2.436055216835836e-15, 9.716924983106888e-15], dtype='float64'),
    'state.iteration': array(0.0, dtype='float64'),
    'state.learning_rate': array(1.1102230246251565e-16, dtype='float64'),
}
TYPES = {'loss.0': ('float64', ()), 'gradient.l0.weight': ('float64', (2, 4)), 'gradient.l0.bias': ('float64', (2,)), 'prediction': ('float64', (4, 2)), 'loss.after': ('float64', ()), 'parameter.l0.weight': ('float64', (2, 4)), 'parameter.l0.bias': ('float64', (2,)), 'state.iteration': ('int32', ()), 'state.learning_rate': ('float64', ())}


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
