"""keras-torch-std-over-no-axes: wrong value on keras-torch"""

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

x = np.arange(6, dtype="float32").reshape(2, 3)
got = keras.ops.convert_to_numpy(keras.ops.std(x, axis=()))
print(f"expected zeros of {x.shape}, got {got}")
wrong = got.shape != x.shape
if wrong:
    print("reproduced: all axes are reduced")
    sys.exit(1)
print("not reproduced")
