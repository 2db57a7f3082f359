"""keras-tensorflow-isin-nothing: wrong value on keras-tensorflow"""

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

got = keras.ops.convert_to_numpy(keras.ops.isin(np.array([1, 2]), np.zeros((0,), "int64"), invert=True))
print(f"expected [True True], got {got}")
wrong = not got.all()
if wrong:
    print("reproduced: nothing is found to be in nothing")
    sys.exit(1)
print("not reproduced")
