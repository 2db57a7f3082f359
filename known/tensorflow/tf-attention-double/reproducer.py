"""tf-attention-double: ValueMismatch of tf-eager

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

TARGET = 'tf-eager'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float64', (1, 2, 3, 2))}
PARAMETERS = {}
OUTPUTS = [('float64', (1, 2, 3, 2))]


def attention(q, k, v, scale, causal=False, mask=None, bias=None):
    """Over (batch, heads, length, features), by way of Keras, which has the length before the heads and as many
    heads of keys and values as of queries."""
    groups = q.shape[1] // k.shape[1]
    q, k, v = (tf.transpose(x, [0, 2, 1, 3]) for x in (q, tf.repeat(k, groups, axis=1), tf.repeat(v, groups, axis=1)))
    mask, bias = (x if x is None or x.shape.rank == 4 else x[tf.newaxis, tf.newaxis] for x in (mask, bias))
    y = tf.keras.ops.dot_product_attention(q, k, v, bias=bias, mask=mask, scale=scale, is_causal=causal)
    return tf.transpose(y, [0, 2, 1, 3])


def model(x0):
    v0 = attention(x0, x0, x0, scale=None, causal=False)
    return (v0,)


def load(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]

    def run(*inputs):
        return [output.numpy() for output in model(*[tf.constant(x) for x in inputs], *bound)]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[[0.1257302210933933, -0.1321048632913019], [0.6404226504432821, 0.10490011715303971], [-0.535669373161111, 0.36159505490948474]], [[1.3040000451301372, 0.9470809631292422], [-0.7037352358069926, -1.2654214710460525], [-0.6232744625373522, 0.0413259793472436]]]], dtype='float64'),
}
EXPECTED = [
    array([[[[0.10229602813621749, 0.1028902172402492], [0.17577199319725095, 0.09191531607911713], [-0.028549947468266005, 0.14606063631254376]], [[1.0829063017256189, 0.8030242772047367], [-0.6102685830266219, -0.8930282531082779], [-0.3088330628233282, -0.33029768045049074]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[2.563811856300802e-15, 1.145960186649172e-15], [3.1325101002900453e-15, 1.239486088841847e-15], [3.1138678959655865e-15, 1.5813187696871635e-15]], [[1.9384987149387827e-14, 1.4020108373161615e-14], [9.164582355732184e-15, 1.323516945909318e-14], [6.111980957079189e-15, 5.542491860417161e-15]]]], dtype='float64'),
]


def wrong(output, expected, allowed, dtype, shape):
    """What is wrong with one output, or None."""
    if str(output.dtype) != dtype or output.shape != tuple(shape):
        return f"{output.dtype}{output.shape} instead of {dtype}{tuple(shape)}"
    if not shape and output.ndim == 0:
        output, expected, allowed = output.reshape(1), expected.reshape(1), allowed.reshape(1)
    if "float" in dtype:
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
