"""Functions that jax spellings may call. Read as text; a program carries the source of those that it uses."""

import jax
import jax.numpy as jnp


def convolution(x, weight, bias=None, *, padding, stride, dilation, groups):
    """Padding is written as all fronts, then all backs."""
    n = len(stride)
    y = jax.lax.conv_general_dilated(
        x,
        weight,
        window_strides=stride,
        padding=list(zip(padding[:n], padding[n:])),
        rhs_dilation=dilation,
        feature_group_count=groups,
    )
    return y if bias is None else y + bias.reshape(-1, *[1] * n)


def conv_transpose2d(x, weight, stride, dilation, padding, output_padding, groups):
    """The gradient of a convolution with respect to its input; weight is (C, O / groups, height, width)."""
    channels, out, height, width = weight.shape
    flipped = weight[:, :, ::-1, ::-1].reshape(groups, channels // groups, out, height, width)
    flipped = flipped.swapaxes(1, 2).reshape(groups * out, channels // groups, height, width)
    border = [d * (k - 1) - p for d, k, p in zip(dilation, (height, width), padding)]
    return jax.lax.conv_general_dilated(
        x,
        flipped,
        window_strides=(1, 1),
        padding=[(b, b + extra) for b, extra in zip(border, output_padding)],
        lhs_dilation=stride,
        rhs_dilation=dilation,
        feature_group_count=groups,
    )


def max_pool(x, kernel, stride, padding, dilation):
    return jax.lax.reduce_window(
        x,
        jnp.array(-jnp.inf, x.dtype),
        jax.lax.max,
        window_dimensions=(1, 1, *kernel),
        window_strides=(1, 1, *stride),
        padding=((0, 0), (0, 0), *((p, p) for p in padding)),
        window_dilation=(1, 1, *dilation),
    )


def avg_pool2d(x, kernel, stride, padding, count_include_pad):
    def total(array):
        return jax.lax.reduce_window(
            array,
            jnp.array(0, array.dtype),
            jax.lax.add,
            window_dimensions=(1, 1, *kernel),
            window_strides=(1, 1, *stride),
            padding=((0, 0), (0, 0), *((p, p) for p in padding)),
        )

    return total(x) / (kernel[0] * kernel[1] if count_include_pad else total(jnp.ones_like(x)))


def normalize(x, axes, epsilon):
    """Zero mean, unit variance (the variance in two passes)."""
    mean = jnp.mean(x, axis=axes, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(jnp.var(x, axis=axes, keepdims=True) + epsilon)


def rms_norm(x, weight, epsilon):
    square = jnp.mean(x * x, axis=tuple(range(-weight.ndim, 0)), keepdims=True)
    return x * jax.lax.rsqrt(square + epsilon) * weight


def batch_norm(x, scale, bias, mean, variance, epsilon):
    scale, bias, mean, variance = (p.reshape(-1, *[1] * (x.ndim - 2)) for p in (scale, bias, mean, variance))
    return (x - mean) * jax.lax.rsqrt(variance + epsilon) * scale + bias


def group_norm(x, scale, bias, groups, epsilon):
    n, channels, *spatial = x.shape
    split = x.reshape(n, groups, channels // groups, *spatial)
    y = normalize(split, tuple(range(2, split.ndim)), epsilon).reshape(x.shape)
    return y * scale.reshape(-1, *[1] * len(spatial)) + bias.reshape(-1, *[1] * len(spatial))


def at_elements(x, indices, axis):
    """x.at[...] for indices along one axis."""
    grid = list(jnp.indices(indices.shape, dtype=indices.dtype, sparse=True))
    grid[axis] = indices
    return x.at[tuple(grid)]
