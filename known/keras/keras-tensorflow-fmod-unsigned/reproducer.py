"""keras-tensorflow-fmod-unsigned: wrong value on keras-tensorflow"""

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

got = keras.ops.convert_to_numpy(keras.ops.fmod(np.array([4294967295], "uint32"), np.array([7], "uint32")))
print(f"expected [3], got {got}")
wrong = got[0] != 3
if wrong:
    print("reproduced: computed in int32")
    sys.exit(1)
print("not reproduced")
