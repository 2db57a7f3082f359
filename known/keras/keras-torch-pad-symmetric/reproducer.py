"""keras-torch-pad-symmetric: wrong value on keras-torch"""

import importlib.util
import os
import sys

for module in ['keras', 'torch']:
    if importlib.util.find_spec(module) is None:
        print(f"not available: {module}")
        sys.exit(77)

os.environ["KERAS_BACKEND"] = "torch"  # read when Keras is imported

import keras
import numpy as np

x = np.array([1, 2, 3], "float32")
got = keras.ops.convert_to_numpy(keras.ops.pad(x, [(2, 2)], mode="symmetric"))
expected = np.pad(x, [(2, 2)], mode="symmetric")
print(f"expected {expected}, got {got}")
wrong = not np.array_equal(got, expected)
if wrong:
    print("reproduced: the edge is repeated")
    sys.exit(1)
print("not reproduced")
