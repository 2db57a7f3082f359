"""TensorFlow: eager, tf.function with grappler, and tf.function compiled by XLA."""

from __future__ import annotations

from harness.backends.target import Level, Target
from harness.dialects import TENSORFLOW

REFUSES: dict[tuple[str, str], str] = {
    ("max_pool3d", "float64"): "MaxPool3D takes float at most",
    ("avg_pool3d", "float64"): "AvgPool3D has a CPU kernel for float only",
}
"""(operator, dtype) that the dialect can say and TensorFlow has no kernel for."""

_MODULES = ("tensorflow",)
_PACKAGES = {"tensorflow-cpu|tensorflow": "2.16"}

_EAGER = """
def load(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]

    def run(*inputs):
        return [output.numpy() for output in model(*[tf.constant(x) for x in inputs], *bound)]

    return run
"""

_FUNCTION = """
def load(parameters):
    bound = [tf.constant(parameters[name]) for name in PARAMETERS]

    @tf.function{options}
    def compiled(*inputs):
        return model(*inputs, *bound)

    def run(*inputs):
        return [output.numpy() for output in compiled(*[tf.constant(x) for x in inputs])]

    return run
"""

TARGETS = (
    Target("tf-eager", "tensorflow", _MODULES, TENSORFLOW, _EAGER, _PACKAGES, Level("tf", 0), refuses=REFUSES),
    Target(
        "tf-graph",
        "tensorflow",
        _MODULES,
        TENSORFLOW,
        _FUNCTION.format(options="(autograph=False)"),
        _PACKAGES,
        Level("tf", 1),
        refuses=REFUSES,
        stride=2,
    ),
    Target(
        "tf-xla",
        "tensorflow",
        _MODULES,
        TENSORFLOW,
        _FUNCTION.format(options="(autograph=False, jit_compile=True)"),
        _PACKAGES,
        Level("tf", 2),
        refuses=REFUSES,
        stride=4,
    ),
)
