"""xla-shifted-in-place-state: ValueMismatch of tf-xla

ran with python 3.11.7, numpy 2.4.6, tensorflow-cpu 2.21.0
exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['tensorflow']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import tensorflow as tf

TARGET = 'tf-xla'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float32', (8, 5)), 'w1': ('float32', ())}
PARAMETERS = {}
STATE = {'w1': 2}
OUTPUTS = [('float32', (1, 8, 5)), ('float32', ()), ('float32', ()), ('float32', (1, 8, 5)), ('float32', ()), ('float32', ()), ('float32', (1, 8, 5)), ('float32', ()), ('float32', ())]


def model(x0, w1):
    u0 = tf.math.square(w1.read_value())
    u1 = w1.assign(u0)
    v0 = tf.add(x0, w1.read_value())
    v1 = v0[0:7, 0:5]
    v2 = tf.raw_ops.TensorStridedSliceUpdate(input=v0, begin=[1], end=[8], strides=[1], value=v1, end_mask=0)
    v3 = tf.expand_dims(v2, axis=0)
    r0 = tf.identity(w1.read_value())
    return (v3, r0,)


def load(parameters):
    def run(*inputs):
        leaves = [
            tf.Variable(array) if name in STATE else tf.constant(array) for name, array in zip(INPUTS, inputs)
        ]

        @tf.function(autograph=False, jit_compile=True)
        def step(*given):
            given = dict(zip(INPUTS, leaves)) | dict(zip([name for name in INPUTS if name not in STATE], given))
            return model(*given.values())

        constants = [leaf for name, leaf in zip(INPUTS, leaves) if name not in STATE]
        held = []
        for _ in range(3):
            outputs = step(*constants)
            held += [output.numpy() for output in outputs]
            held += [leaf.numpy() for name, leaf in zip(INPUTS, leaves) if name in STATE]
        return held

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[0.1257302165031433, -0.13210485875606537, 0.6404226422309875, 0.10490011423826218, -0.5356693863868713], [0.3615950644016266, 1.3040000200271606, 0.9470809698104858, -0.7037352323532104, -1.2654215097427368], [-0.6232744455337524, 0.04132597893476486, -2.32503080368042, -0.218791663646698, -1.2459110021591187], [-0.7322673797607422, -0.5442590117454529, -0.3163001537322998, 0.4116305410861969, 1.042513370513916], [-0.12853465974330902, 1.3664634227752686, -0.6651946902275085, 0.35151007771492004, 0.9034701585769653], [0.0940122976899147, -0.7434992790222168, -0.9217253923416138, -0.4577258229255676, 0.22019512951374054], [-1.0096181631088257, -0.20917557179927826, -0.15922501683235168, 0.5408455729484558, 0.21465912461280823], [0.35537269711494446, -0.6538286209106445, -0.12961363792419434, 0.7839754819869995, 1.4934310913085938]], dtype='float32'),
    'w1': array(1.0, dtype='float32'),
}
EXPECTED = [
    array([[[1.1257302165031433, 0.8678951412439346, 1.6404226422309875, 1.1049001142382622, 0.46433061361312866], [1.1257302165031433, 0.8678951412439346, 1.6404226422309875, 1.1049001142382622, 0.46433061361312866], [1.3615950644016266, 2.3040000200271606, 1.9470809698104858, 0.29626476764678955, -0.2654215097427368], [0.37672555446624756, 1.0413259789347649, -1.32503080368042, 0.781208336353302, -0.24591100215911865], [0.2677326202392578, 0.4557409882545471, 0.6836998462677002, 1.411630541086197, 2.042513370513916], [0.871465340256691, 2.3664634227752686, 0.33480530977249146, 1.35151007771492, 1.9034701585769653], [1.0940122976899147, 0.2565007209777832, 0.07827460765838623, 0.5422741770744324, 1.2201951295137405], [-0.009618163108825684, 0.7908244282007217, 0.8407749831676483, 1.5408455729484558, 1.2146591246128082]]], dtype='float64'),
    array(1.0, dtype='float64'),
    array(1.0, dtype='float64'),
    array([[[1.1257302165031433, 0.8678951412439346, 1.6404226422309875, 1.1049001142382622, 0.46433061361312866], [1.1257302165031433, 0.8678951412439346, 1.6404226422309875, 1.1049001142382622, 0.46433061361312866], [1.3615950644016266, 2.3040000200271606, 1.9470809698104858, 0.29626476764678955, -0.2654215097427368], [0.37672555446624756, 1.0413259789347649, -1.32503080368042, 0.781208336353302, -0.24591100215911865], [0.2677326202392578, 0.4557409882545471, 0.6836998462677002, 1.411630541086197, 2.042513370513916], [0.871465340256691, 2.3664634227752686, 0.33480530977249146, 1.35151007771492, 1.9034701585769653], [1.0940122976899147, 0.2565007209777832, 0.07827460765838623, 0.5422741770744324, 1.2201951295137405], [-0.009618163108825684, 0.7908244282007217, 0.8407749831676483, 1.5408455729484558, 1.2146591246128082]]], dtype='float64'),
    array(1.0, dtype='float64'),
    array(1.0, dtype='float64'),
    array([[[1.1257302165031433, 0.8678951412439346, 1.6404226422309875, 1.1049001142382622, 0.46433061361312866], [1.1257302165031433, 0.8678951412439346, 1.6404226422309875, 1.1049001142382622, 0.46433061361312866], [1.3615950644016266, 2.3040000200271606, 1.9470809698104858, 0.29626476764678955, -0.2654215097427368], [0.37672555446624756, 1.0413259789347649, -1.32503080368042, 0.781208336353302, -0.24591100215911865], [0.2677326202392578, 0.4557409882545471, 0.6836998462677002, 1.411630541086197, 2.042513370513916], [0.871465340256691, 2.3664634227752686, 0.33480530977249146, 1.35151007771492, 1.9034701585769653], [1.0940122976899147, 0.2565007209777832, 0.07827460765838623, 0.5422741770744324, 1.2201951295137405], [-0.009618163108825684, 0.7908244282007217, 0.8407749831676483, 1.5408455729484558, 1.2146591246128082]]], dtype='float64'),
    array(1.0, dtype='float64'),
    array(1.0, dtype='float64'),
]
ALLOWED = [
    array([[[1.2670339846770468e-07, 1.1133523033899256e-07, 1.5738145778608166e-07, 1.2546182761694618e-07, 8.728090993600074e-08], [1.2670339846770468e-07, 1.1133523033899256e-07, 1.5738145778608166e-07, 1.2546182761694618e-07, 8.728090993600074e-08], [1.4076203899406784e-07, 1.969337518179515e-07, 1.7565971853696485e-07, 7.726340485098346e-08, 7.542500341304806e-08], [8.205924148557157e-08, 1.216725138511623e-07, 1.3858263921418666e-07, 1.0616829410752448e-07, 7.426208653480673e-08], [7.556275633374304e-08, 8.676892836584152e-08, 1.0035633517173625e-07, 1.437443858191291e-07, 1.8134793290214576e-07], [1.115480307837181e-07, 2.0065686076408427e-07, 7.956060018239462e-08, 1.4016092694280286e-07, 1.730603116153407e-07], [1.2481286317678475e-07, 7.489328296561589e-08, 6.427017875194057e-08, 9.192670836594681e-08, 1.3233394607241495e-07], [6.017793574777792e-08, 1.0674145784835266e-07, 1.097187429445812e-07, 1.5144620192161132e-07, 1.320039744655908e-07]]], dtype='float64'),
    array(5.960464499743523e-08, dtype='float64'),
    array(5.960464499743523e-08, dtype='float64'),
    array([[[2.459127062261445e-07, 2.3054453809743237e-07, 2.7659076554452147e-07, 2.44671135375386e-07, 2.0649021769444053e-07], [2.459127062261445e-07, 2.3054453809743237e-07, 2.7659076554452147e-07, 2.44671135375386e-07, 2.0649021769444053e-07], [2.5997134675250765e-07, 3.1614305957639137e-07, 2.9486902629540465e-07, 1.9647271260942327e-07, 1.9463431117148787e-07], [2.0126854924401138e-07, 2.408818216096021e-07, 2.5779194697262644e-07, 2.253776018659643e-07, 1.9347139429324654e-07], [1.9477206409218285e-07, 2.0597823612428134e-07, 2.1956564293017605e-07, 2.629536935775689e-07, 3.005572406605856e-07], [2.307573385421579e-07, 3.1986616852252413e-07, 1.9876990794083444e-07, 2.5937023470124267e-07, 2.922696193737805e-07], [2.4402217093522456e-07, 1.941025907240557e-07, 1.8347948651038038e-07, 2.111360161243866e-07, 2.5154325383085476e-07], [1.7938724350621772e-07, 2.2595076560679246e-07, 2.28928050703021e-07, 2.706555096800511e-07, 2.512132822240306e-07]]], dtype='float64'),
    array(1.78813945650447e-07, dtype='float64'),
    array(1.78813945650447e-07, dtype='float64'),
    array([[[4.843313643755979e-07, 4.6896319624688584e-07, 5.150094236939749e-07, 4.830897935248394e-07, 4.44908875843894e-07], [4.843313643755979e-07, 4.6896319624688584e-07, 5.150094236939749e-07, 4.830897935248394e-07, 4.44908875843894e-07], [4.983900049019611e-07, 5.545617177258448e-07, 5.332876844448582e-07, 4.348913707588767e-07, 4.330529693209413e-07], [4.396872073934648e-07, 4.793004797590556e-07, 4.962106051220799e-07, 4.6379626001541774e-07, 4.318900524427e-07], [4.331907222416363e-07, 4.443968942737348e-07, 4.579843010796295e-07, 5.013723517270224e-07, 5.389758988100391e-07], [4.6917599669161135e-07, 5.582848266719775e-07, 4.371885660902879e-07, 4.977888928506961e-07, 5.30688277523234e-07], [4.82440829084678e-07, 4.3252124887350917e-07, 4.218981446598338e-07, 4.4955467427384005e-07, 4.899619119803082e-07], [4.1780590165567117e-07, 4.6436942375624594e-07, 4.6734670885247443e-07, 5.090741678295046e-07, 4.896319403734841e-07]]], dtype='float64'),
    array(4.172325895890418e-07, dtype='float64'),
    array(4.172325895890418e-07, dtype='float64'),
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
