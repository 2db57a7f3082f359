"""Functions of images that jax spellings may call. Read as text, as basic.py is."""

import jax
import jax.numpy as jnp


def grid_sample(x, grid, mode, padding, align_corners):
    """Each channel at coordinates of pixels; what is reflected there are pixels, too."""
    edge = {"zeros": "constant", "border": "nearest", "reflection": "mirror" if align_corners else "reflect"}[padding]
    height, width = x.shape[2:]
    size = jnp.array([width, height], x.dtype)
    places = (grid + 1) / 2 * (size - 1) if align_corners else ((grid + 1) * size - 1) / 2

    def sample(channel, at):
        order = 1 if mode == "bilinear" else 0
        return jax.scipy.ndimage.map_coordinates(channel, [at[..., 1], at[..., 0]], order, edge)

    return jax.vmap(jax.vmap(sample, (0, None)), (0, 0))(x, places)


def affine_grid(maps, size, align_corners):
    """The coordinates of each point and 1, times the maps."""
    rows, columns = (jnp.linspace(-1, 1, n, dtype=maps.dtype) * (1 if align_corners else (n - 1) / n) for n in size)
    x, y = jnp.meshgrid(columns, rows)
    return jnp.einsum("hwk,nck->nhwc", jnp.stack([x, y, jnp.ones_like(x)], axis=-1), maps)
