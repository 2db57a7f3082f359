"""Programs of forward mode: how each framework pushes tangents through the model. Each `load(parameters)` returns a
function from the inputs, the tangents of LEAVES last, to the tangents of the outputs whose numbers are MOVED."""

from __future__ import annotations

from generators.graph import Graph
from harness.backends.programs.gradient import REFUSES, underivable
from harness.backends.target.documented_refusals import Patterns, refusal_of
from harness.backends.target.target import Target
from oracles.derivatives.jvp import moved, tangent_name, tangents

_VALUES = "[values[name] for name in [*INPUTS, *PARAMETERS] if name not in LEAVES.values()]"

_TORCH = """
def load(parameters):
    def pushed(given):
        def outputs(*leaves):
            values = {{**given, **dict(zip(LEAVES, leaves))}}
            results = model(*{values})
            return tuple(results[i] for i in MOVED)

        leaves = tuple(given[name] for name in LEAVES)
        return torch.func.jvp(outputs, leaves, tuple(given[name] for name in LEAVES.values()))[1]

    compiled = {compiled}

    def run(*inputs):
        given = {{**dict(zip(INPUTS, inputs)), **parameters}}
        found = compiled({{name: torch.from_numpy(array) for name, array in given.items()}})
        return [output.numpy(force=True) for output in found]

    return run
"""

_TENSORFLOW = """
def load(parameters):
{decorator}    def pushed(given):
        leaves, along = [given[name] for name in LEAVES], [given[name] for name in LEAVES.values()]
        with tf.autodiff.ForwardAccumulator(leaves, along) as accumulator:
            values = given
            results = model(*{values})
            found = [
                accumulator.jvp(results[i], unconnected_gradients=tf.UnconnectedGradients.ZERO) for i in MOVED
            ]
        return [tf.convert_to_tensor(tangent) for tangent in found]  # from IndexedSlices, too

    def run(*inputs):
        given = {{**dict(zip(INPUTS, inputs)), **parameters}}
        found = pushed({{name: tf.constant(array) for name, array in given.items()}})
        return [tangent.numpy() for tangent in found]

    return run
"""

_JAX = """
def load(parameters):
    def pushed(given):
        def outputs(*leaves):
            values = {{**given, **dict(zip(LEAVES, leaves))}}
            results = model(*{values})
            return [results[i] for i in MOVED]

        leaves = [given[name] for name in LEAVES]
        return jax.jvp(outputs, leaves, [given[name] for name in LEAVES.values()])[1]

    compiled = {compiled}

    def run(*inputs):
        given = {{**dict(zip(INPUTS, inputs)), **parameters}}
        with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
            found = compiled({{name: jnp.asarray(array) for name, array in given.items()}})
            return [np.asarray(tangent) for tangent in found]

    return run
"""

TORCH_EAGER = _TORCH.format(values=_VALUES, compiled="pushed")
TENSORFLOW_EAGER = _TENSORFLOW.format(values=_VALUES, decorator="")
JAX_EAGER = _JAX.format(values=_VALUES, compiled="pushed")
JAX_JIT = _JAX.format(values=_VALUES, compiled="jax.jit(pushed)")


def torch_compiled(backend: str) -> str:
    """The whole computation of the tangents, compiled."""
    compiled = f'torch.compile(pushed, backend="{backend}", fullgraph=True, dynamic=False)'
    return _TORCH.format(values=_VALUES, compiled=compiled)


def tensorflow_function(options: str) -> str:
    """The whole computation of the tangents as one tf.function."""
    return _TENSORFLOW.format(values=_VALUES, decorator=f"    @tf.function{options}\n")


UNKNOWN: Patterns = (
    (
        "torch",
        "Trying to use forward AD with .* that does not support it|not implemented for the forward mode AD",
        "no formula of forward mode (Trying to use forward AD with … that does not support it)",
    ),
    ("tensorflow", "gradient registry has no entry|No gradient defined for operation", "no registered gradient"),
    (
        "tensorflow",
        r"(?s)No registered 'MaxPool(3D)?GradGrad' OpKernel for XLA_CPU_JIT.*attributes didn't match",
        "XLA's kernel of the second gradient of max pooling takes float32",
    ),
    ("jax", "can't apply forward-mode differentiation", "it has a rule of reverse mode only (custom_vjp)"),
)
"""What has no derivative of some kind."""
NONE_AT_ALL: Patterns = (
    (
        "torch",
        "does not support automatic differentiation for outputs with complex dtype",
        "it says so of complex results",
    ),
    ("tensorflow", "Could not find device for node|No OpKernel was registered", "no kernel of its gradient"),
    ("torch", "is not differentiable with respect to argument", "what it says of weights and targets"),
    ("tensorflow", "Input is not invertible", "its derivative of determinants is by way of tf.linalg.inv"),
    ("torch", "The derivative of linalg.qr depends on Q", "what it says of QR without Q"),
    ("jax", "gradients are only implemented if `unique_indices", "none of products at places that may be the same"),
    ("jax", "Betainc gradient with respect to a and b not supported", "what it says of the incomplete beta function"),
    (
        "torch",
        r"the derivative for '[\w: ]+' is not implemented",
        "what it says of incomplete gamma functions and zeta",
    ),
    (
        "tensorflow",
        r"(?s)Detected unsupported operations.*No registered 'ResizeNearestNeighborGrad' OpKernel for XLA",
        "XLA has no kernel for ResizeNearestNeighborGrad",
    ),
)
"""What has none of any kind."""
_REFUSALS: Patterns = (
    *UNKNOWN,
    *NONE_AT_ALL,
    (
        "jax",
        "(Differentiation|JVP|Forward-mode differentiation) rule for .* not implemented",
        "no rule of forward mode",
    ),
)
"""What a framework says that it cannot push forward."""

refusal = refusal_of(_REFUSALS)
"""The documented reason why a framework refused."""


def unsupported(target: Target, graph: Graph) -> str | None:
    """Why this target cannot push tangents through the graph, or None. TensorFlow transposes its gradients, so that
    what has none is refused here, too."""
    if "jvp" not in target.question_loads:
        return "no program of forward mode is written"
    return underivable(target, graph, {} if target.library == "jax" else REFUSES.get(target.library, {}))


def program(target: Target, graph: Graph) -> str:
    """The standalone program of the tangents."""
    directions = tangents(graph)
    types = {tangent_name(name): graph.types[name] for name in directions}
    names = {name: tangent_name(name) for name in directions}
    head = f"LEAVES = {names!r}  # leaf -> its tangent\nMOVED = {moved(graph)!r}  # numbers of outputs\n"
    results = [graph.types[graph.outputs[i]] for i in moved(graph)]
    return target.text(graph, head + "\n" + target.question_loads["jvp"], types, results)
