"""Functions that jax spellings of operators said otherwise may call. Read as text; a program carries the source of
those it uses."""

import jax
import jax.numpy as jnp


def scanned(f, x, axis):
    """What a loop has gathered by each place of the axis."""
    rows = jnp.moveaxis(x, axis, 0)
    if not rows.shape[0]:
        return x

    def step(so_far, row):
        so_far = f(so_far, row)
        return so_far, so_far

    _, rest = jax.lax.scan(step, rows[0], rows[1:])
    return jnp.moveaxis(jnp.concatenate([rows[:1], rest]), 0, axis)


def either(f, x):
    """The function in both branches of a condition."""
    return jax.lax.cond(jnp.any(x > 0), f, lambda x: f(x), x)


def by_rows(f, x):
    """Row after row, in a loop."""
    return jax.lax.fori_loop(0, x.shape[0], lambda i, rows: rows.at[i].set(f(x[i])), jnp.zeros_like(x))


def convolution_last(x, weight, bias, stride, padding, dilation, groups):
    """NCHW by OIHW, convolved with channels last."""
    top, left, bottom, right = padding
    y = jax.lax.conv_general_dilated(
        jnp.transpose(x, (0, 2, 3, 1)),
        jnp.transpose(weight, (2, 3, 1, 0)),
        stride,
        [(top, bottom), (left, right)],
        rhs_dilation=dilation,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )
    return jnp.transpose(y + bias, (0, 3, 1, 2))
