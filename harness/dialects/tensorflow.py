"""TensorFlow."""

from __future__ import annotations

from generators.graph import EVERY
from harness.dialects.dialect import Dialect, functions

TENSORFLOW = Dialect(
    "tensorflow",
    "import numpy as np\nimport tensorflow as tf",
    {n: f"tf.{n}" for n in EVERY},
    functions("tensorflow"),
)

DIALECTS = (TENSORFLOW,)
