"""keras-torch-unrolled-mask-backwards: AttributeError on keras-torch"""

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

layer = keras.layers.SimpleRNN(2, unroll=True, go_backwards=True)
try:
    layer(np.ones((1, 3, 2), "float32"), mask=np.array([[True, True, False]]))
    wrong = False
except AttributeError as error:
    print(error)
    wrong = "no attribute 'shape'" in str(error)
if wrong:
    print("reproduced: a tuple has no shape")
    sys.exit(1)
print("not reproduced")
