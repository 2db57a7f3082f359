"""keras-tensorflow-norm-kept-axes: wrong shape on keras-tensorflow"""

import importlib.util
import os
import sys

for module in ['keras', 'tensorflow']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

os.environ["KERAS_BACKEND"] = "tensorflow"  # read when Keras is imported

import keras
import numpy as np

x = np.ones((2, 3, 3), "float32")
got = keras.ops.norm(x, ord=2, axis=(-2, -1), keepdims=True)
expected = np.linalg.norm(x, ord=2, axis=(-2, -1), keepdims=True)
print(f"expected {expected.shape}, got {tuple(got.shape)}")
wrong = tuple(got.shape) != expected.shape
if wrong:
    print("reproduced: another shape")
    sys.exit(1)
print("not reproduced")
