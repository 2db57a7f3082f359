"""Fourier transforms that tensorflow spellings may call. Read as text, as basic.py is."""

import tensorflow as tf


def complex_of(x):
    return tf.complex(x[..., 0], x[..., 1])


def pairs_of(y):
    return tf.stack([tf.math.real(y), tf.math.imag(y)], axis=-1)


def normed(y, n, norm, inverse):
    """TensorFlow divides by n in inverse transforms only."""
    power = {"backward": 0, "ortho": 0.5, "forward": 1}[norm]
    return y * float(n) ** (power if inverse else -power)


def rfft(x, size, norm):
    return normed(pairs_of(tf.signal.rfft(x, [size])), size, norm, False)


def irfft(x, size, norm):
    return normed(tf.signal.irfft(complex_of(x), [size]), size, norm, True)


def transformed(x, name, inverse, axes, norm):
    y = getattr(tf.signal, ("i" if inverse else "") + name)(complex_of(x))
    n = 1
    for dim in x.shape[-axes - 1 : -1]:
        n *= dim
    return normed(pairs_of(y), n, norm, inverse)


def short_time(x, window, step, onesided):
    """Of pieces that begin a step apart, each by the window."""
    pieces = tf.signal.frame(x, window.shape[0], step) * window
    if onesided:
        return pairs_of(tf.signal.rfft(pieces))
    return pairs_of(tf.signal.fft(tf.complex(pieces, tf.zeros_like(pieces))))
