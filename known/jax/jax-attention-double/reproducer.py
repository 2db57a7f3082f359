"""jax-attention-double: ValueMismatch of jax-eager

exit status: 1 reproduced, 0 not reproduced, 77 not available here
"""

import importlib.util
import sys

for module in ['jax', 'jax.numpy']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

# ---- the program that ran ----

import numpy as np
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

TARGET = 'jax-eager'
# name: (dtype, shape), in the order that the model takes them
INPUTS = {'x0': ('float64', (1, 2, 3, 4))}
PARAMETERS = {}
OUTPUTS = [('float64', (1, 2, 3, 4))]


def attention(q, k, v, scale, causal=False, mask=None, bias=None):
    """Over (batch, heads, length, features); jax.nn has the length before the heads, and values as wide as keys."""
    q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    width, features = v.shape[-1], k.shape[-1]
    if width > features:
        parts = [(start, min(start + features, width)) for start in range(0, width, features)]
    else:
        parts = [(0, width)]
    results = []
    for start, stop in parts:
        part = jnp.pad(v[..., start:stop], [(0, 0)] * 3 + [(0, features - (stop - start))])
        y = jax.nn.dot_product_attention(
            q,
            k,
            part,
            scale=scale,
            is_causal=causal,
            mask=mask if mask is None else mask.reshape((1,) * (4 - mask.ndim) + mask.shape),
            bias=bias if bias is None else bias.reshape((1,) * (4 - bias.ndim) + bias.shape),
        )
        results.append(y[..., : stop - start])
    return jnp.concatenate(results, axis=-1).swapaxes(1, 2)


def model(x0):
    v0 = attention(x0, x0, x0, scale=None, causal=False)
    return (v0,)


def load(parameters):
    with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
        bound = [jnp.asarray(parameters[name]) for name in PARAMETERS]

    def apply(*inputs):
        return model(*inputs, *bound)

    compiled = apply

    def run(*inputs):
        with jax.default_device(jax.devices("cpu")[0]):
            return [np.asarray(output) for output in compiled(*[jnp.asarray(x) for x in inputs])]

    return run


# ---- its inputs, and what a correct evaluation returns: value, and how far from it (inf: anything) ----

from pathlib import Path

from numpy import array, inf, nan

SYMPTOM = 'value'  # ValueMismatch
SECONDS = 120.0
ZERO_SIGNS = False  # are the signs of zeros compared?
ARRAYS = {
    'x0': array([[[[0.0, 0.2425057011196053, 0.0, 0.0], [0.3234521500317312, 0.6659548332265737, 0.0, -0.0], [0.0, 0.5780571448878148, -0.0, -0.0]], [[1.3131839068370048, -1.6326286685400078, 0.0, -0.0], [-1.0375930635566195, -0.0, 0.29918196859408974, -0.0], [0.0, -0.0, -0.3664600019581486, 0.3762094711791989]]]], dtype='float64'),
}
EXPECTED = [
    array([[[[0.11004206018526017, 0.49951601389795636, 0.0, 0.0], [0.11779514281194403, 0.5093460954760745, 0.0, 0.0], [0.1131062603724323, 0.5049731736495393, 0.0, 0.0]], [[1.0745139609785397, -1.398147084146054, -0.020512079617441212, 0.03587850515434199], [-0.36817791472108624, -0.25463322331179333, 0.0582817326896123, 0.10978015021045133], [0.10694340426623952, -0.527584943422562, -0.04440997785167255, 0.1395499427509283]]]], dtype='float64'),
]
ALLOWED = [
    array([[[[6.631437473655194e-16, 2.9912651273785733e-15, 0.0, 0.0], [8.376663235166866e-16, 3.5291211935346564e-15, 0.0, 0.0], [7.565282237405857e-16, 3.3334790061264252e-15, 0.0, 0.0]], [[2.246124222955214e-14, 2.6997278120200585e-14, 6.515678708448412e-16, 4.479792617170152e-16], [7.169640251978281e-15, 2.461197775362761e-15, 2.2921007257202834e-15, 8.167686179217852e-16], [4.387048943749652e-15, 3.07633072384708e-15, 1.402396891278533e-15, 8.735391196301379e-16]]]], dtype='float64'),
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
