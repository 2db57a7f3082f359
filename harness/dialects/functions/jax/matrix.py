"""Functions of matrices that jax spellings may call. Read as text, as basic.py is."""

import jax
import jax.numpy as jnp


def formed(x, form):
    """Elements beyond 4 as zeros; then a dominant diagonal, or x x^T + n I; a power of two times that."""
    if form in ("vast", "minute"):
        exponent = {"float64": 716, "float16": 9}.get(x.dtype.name, 89)
        return formed(x, "shifted") * 2.0 ** (exponent if form == "vast" else -exponent)
    x = jnp.where(jnp.abs(x) <= 4, x, 0)
    rows, columns = x.shape[-2:]
    if form == "gram":
        return x @ x.mT + rows * jnp.eye(rows, dtype=x.dtype)
    diagonal = (4 * columns + 1) * jnp.eye(rows, columns, dtype=x.dtype)
    return x + {"tamed": 0 * diagonal, "shifted": diagonal, "turned": diagonal[:, ::-1]}[form]


def triangular_solve(x, b, lower, unit, transposed):
    t = formed(x, "tamed")
    if not unit:
        t = t + 5 * jnp.eye(t.shape[-1], dtype=t.dtype)
    return jax.lax.linalg.triangular_solve(
        t, b, left_side=True, lower=lower, transpose_a=transposed, unit_diagonal=unit
    )


def triangular_solved(x, b, lower, unit, transposed):
    t = formed(x, "tamed")
    if not unit:
        t = t + 5 * jnp.eye(t.shape[-1], dtype=t.dtype)
    return jax.scipy.linalg.solve_triangular(t, b, trans=int(transposed), lower=lower, unit_diagonal=unit)


def qr_factor(x):
    """R with a positive diagonal."""
    r = jnp.linalg.qr(x, mode="r")
    return r * jnp.sign(jnp.diagonal(r, 0, -2, -1))[..., None]


def eigenvalues(x):
    """Of the symmetric matrix x + x^T."""
    return jnp.linalg.eigvalsh(x + x.mT)


def tridiagonal_eigenvalues(x):
    """Of the matrix with x[0] on its diagonal, and x[1] beside it, whose last element does not count."""
    x = jnp.where(jnp.abs(x) <= 4, x, 0)
    return jax.scipy.linalg.eigh_tridiagonal(x[0], x[1, :-1], eigvals_only=True)


def lu_product(x):
    places, lower, upper = jax.scipy.linalg.lu(x)
    return places @ lower @ upper


def qr_product(x):
    q, r = jnp.linalg.qr(x)
    return q @ r


def svd_product(x):
    u, s, v = jnp.linalg.svd(x, full_matrices=False)
    return (u * s[..., None, :]) @ v


def eigh_product(x):
    """Of the symmetric matrix x + x^T."""
    values, vectors = jnp.linalg.eigh(x + x.mT)
    return (vectors * values[..., None, :]) @ vectors.mT


def dominant(x, main):
    """Rows of diagonals: elements beyond 4 as zeros, and 9 added to the main one."""
    x = jnp.where(jnp.abs(x) <= 4, x, 0)
    return x + jnp.asarray([[9.0 if row == main else 0.0] for row in range(x.shape[-2])], x.dtype)


def tridiagonal_solve(x, b):
    """jax.lax takes the diagonal below the main one first, each as a row of its own."""
    above, below = x[..., 0, :].at[..., -1].set(0), x[..., 2, :].at[..., 0].set(0)
    return jax.lax.linalg.tridiagonal_solve(below, x[..., 1, :], above, b)


def reflections(x):
    """I - tau v v^T one after the other, tau = 2 / |v|^2, v a column below its diagonal, which is 1."""
    x = formed(x, "tamed")
    v = jnp.tril(x, -1) + jnp.eye(*x.shape[-2:], dtype=x.dtype)
    return jax.lax.linalg.householder_product(x, 2 / (v * v).sum(-2))
