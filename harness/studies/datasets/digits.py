"""Scikit-learn's digits, which come with it: 1,797 pictures of 8 x 8 in 17 shades of grey (E. Alpaydin and C. Kaynak,
Optical Recognition of Handwritten Digits, UCI, 1998). Every fifth is a test sample."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from harness.studies.datasets.dataset import DataSet


def digits() -> DataSet:
    """1,438 samples to train with, 359 to test with; from 0 to 1."""
    # imported when it is asked for: all commands that import the studies would wait for it
    pixels, labels = import_module("sklearn.datasets").load_digits(return_X_y=True)
    x, y = (pixels.reshape(-1, 1, 8, 8) / 16).astype(np.float32), labels.astype(np.int64)
    held = np.arange(len(x)) % 5 == 4
    return DataSet("digits", x[~held], y[~held], x[held], y[held], tuple("0123456789"))
