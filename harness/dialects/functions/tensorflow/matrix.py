"""Functions of matrices that tensorflow spellings may call. Read as text, as basic.py is."""

import tensorflow as tf


def formed(x, form):
    """Elements beyond 4 as zeros; then a dominant diagonal, or x x^T + n I; a power of two times that."""
    if form in ("vast", "minute"):
        exponent = {"float64": 716, "float16": 9}.get(x.dtype.name, 89)
        return formed(x, "shifted") * 2.0 ** (exponent if form == "vast" else -exponent)
    x = tf.where(tf.abs(x) <= 4, x, tf.zeros_like(x))
    rows, columns = x.shape[-2:]
    if form == "gram":
        return tf.matmul(x, x, transpose_b=True) + rows * tf.eye(rows, dtype=x.dtype)
    diagonal = (4 * columns + 1) * tf.eye(rows, columns, dtype=x.dtype)
    return x + {"tamed": 0 * diagonal, "shifted": diagonal, "turned": tf.reverse(diagonal, [-1])}[form]


def triangular_solve(x, b, lower, unit, transposed):
    t = formed(x, "tamed")
    n = t.shape[-1]
    t = tf.linalg.set_diag(t, tf.ones_like(t[..., 0])) if unit else t + 5 * tf.eye(n, dtype=t.dtype)
    return tf.linalg.triangular_solve(t, b, lower=lower, adjoint=transposed)


def triangular_solved(x, b, transposed):
    """The operator of a lower triangle reads no other."""
    t = formed(x, "tamed")
    t = t + 5 * tf.eye(t.shape[-1], dtype=t.dtype)
    return tf.linalg.LinearOperatorLowerTriangular(t).solve(b, adjoint=transposed)


def matrix_power(x, k):
    if k == 0:
        return tf.eye(x.shape[-1], batch_shape=x.shape[:-2], dtype=x.dtype)
    y = x
    for _ in range(k - 1):
        y = tf.matmul(y, x)
    return tf.identity(y)


def qr_factor(x):
    """R with a positive diagonal."""
    r = tf.linalg.qr(x)[1]
    return r * tf.expand_dims(tf.sign(tf.linalg.diag_part(r)), -1)


def eigenvalues(x):
    """Of the symmetric matrix x + x^T."""
    return tf.linalg.eigvalsh(x + tf.linalg.matrix_transpose(x))


def tridiagonal_eigenvalues(x):
    """Of the matrix with x[0] on its diagonal, and x[1] beside it, whose last element does not count."""
    x = tf.where(tf.abs(x) <= 4, x, tf.zeros_like(x))
    return tf.linalg.eigh_tridiagonal(x[0], x[1, :-1], eigvals_only=True)


def qr_product(x):
    q, r = tf.linalg.qr(x)
    return q @ r


def svd_product(x):
    s, u, v = tf.linalg.svd(x)
    return tf.matmul(u * s[..., None, :], v, adjoint_b=True)


def eigh_product(x):
    """Of the symmetric matrix x + x^T."""
    values, vectors = tf.linalg.eigh(x + tf.linalg.matrix_transpose(x))
    return tf.matmul(vectors * values[..., None, :], vectors, adjoint_b=True)


def dominant(x, main):
    """Rows of diagonals: elements beyond 4 as zeros, and 9 added to the main one."""
    x = tf.where(tf.abs(x) <= 4, x, tf.zeros_like(x))
    return x + tf.constant([[9.0 if row == main else 0.0] for row in range(x.shape[-2])], x.dtype)
