"""Functions of matrices that spellings of Keras may call. Read as text, as basic.py is."""

import keras


def formed(x, form):
    """Elements beyond 4 as zeros; then a dominant diagonal, or x x^T + n I; a power of two times that."""
    dtype = keras.backend.standardize_dtype(x.dtype)
    if form in ("vast", "minute"):
        exponent = {"float64": 716, "float16": 9}.get(dtype, 89)
        return keras.ops.multiply(formed(x, "shifted"), 2.0 ** (exponent if form == "vast" else -exponent))
    x = keras.ops.where(keras.ops.less_equal(keras.ops.abs(x), 4), x, keras.ops.zeros_like(x))
    rows, columns = x.shape[-2:]
    if form == "gram":
        gram = keras.ops.matmul(x, keras.ops.swapaxes(x, -2, -1))
        return keras.ops.add(gram, keras.ops.multiply(float(rows), keras.ops.eye(rows, dtype=dtype)))
    if form == "tamed":
        return x
    diagonal = keras.ops.multiply(float(4 * columns + 1), keras.ops.eye(rows, columns, dtype=dtype))
    return keras.ops.add(x, diagonal if form == "shifted" else keras.ops.flip(diagonal, 1))


def symmetric(x):
    return keras.ops.add(x, keras.ops.swapaxes(x, -2, -1))


def qr_factor(x):
    """R with a positive diagonal."""
    r = keras.ops.qr(x, mode="reduced")[1]
    return keras.ops.multiply(r, keras.ops.expand_dims(keras.ops.sign(keras.ops.diagonal(r, 0, -2, -1)), -1))


def svd_product(x):
    u, s, v = keras.ops.svd(x, full_matrices=False)
    return keras.ops.matmul(keras.ops.multiply(u, keras.ops.expand_dims(s, -2)), v)


def eigh_product(x):
    """Of the symmetric matrix x + x^T."""
    values, vectors = keras.ops.eigh(symmetric(x))
    scaled = keras.ops.multiply(vectors, keras.ops.expand_dims(values, -2))
    return keras.ops.matmul(scaled, keras.ops.swapaxes(vectors, -2, -1))
