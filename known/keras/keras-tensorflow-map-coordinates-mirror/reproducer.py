"""keras-tensorflow-map-coordinates-mirror: InvalidArgumentError on keras-tensorflow"""

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

image = np.arange(9, dtype="float32").reshape(3, 3)
places = np.array([[-1.5, 2.5], [0.5, 3.5]], "float32")
try:
    got = keras.ops.convert_to_numpy(keras.ops.image.map_coordinates(image, places, order=1, fill_mode="mirror"))
    print(f"expected [5. 5.], got {got}")
    wrong = not np.allclose(got, 5)
except Exception as error:
    print(error)
    wrong = "does not index into param" in str(error)
if wrong:
    print("reproduced: a place outside of the image is read")
    sys.exit(1)
print("not reproduced")
