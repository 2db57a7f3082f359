"""Programs of second derivatives: how each framework differentiates the gradient of the model along tangents. Each
`load(parameters)` returns a function from the inputs, the weights of the outputs and the tangents of LEAVES last, to
the derivatives of the gradients by LEAVES."""

from __future__ import annotations

from collections.abc import Callable

from generators.graph import COMPONENT, Graph
from harness.backends.programs import gradient
from harness.backends.programs.jvp import NONE_AT_ALL, UNKNOWN
from harness.backends.target.documented_refusals import Patterns, refusal_of
from harness.backends.target.target import Target
from oracles.derivatives.gradient import differentiable_leaves, weight_name, weights
from oracles.derivatives.jvp import tangent_name, tangents

VALUES = "[values[name] for name in [*INPUTS, *PARAMETERS] if name not in {*WEIGHTS.values(), *LEAVES.values()}]"

_TORCH_TWICE = """
def load(parameters):
    def run(*inputs):
        given = {{**dict(zip(INPUTS, inputs)), **parameters}}
        values = {{name: torch.from_numpy(array.copy()) for name, array in given.items()}}
        for name in LEAVES:
            values[name].requires_grad_()
        outputs = model(*{values})
        wanted = [values[name] for name in LEAVES]

        def pulled(results, seeds, **options):
            # what is a constant by the framework's own rules has a gradient of zero
            pairs = [(result, seed) for result, seed in zip(results, seeds) if result.requires_grad]
            if not pairs:
                return [torch.zeros_like(leaf) for leaf in wanted]
            reached, given = zip(*pairs)
            return torch.autograd.grad(reached, wanted, given, allow_unused=True, materialize_grads=True, **options)

        results, seeds = [outputs[i] for i in WEIGHTS], [values[weight] for weight in WEIGHTS.values()]
        gradients = pulled(results, seeds, create_graph=True)
        found = pulled(gradients, [values[name] for name in LEAVES.values()])
        return [output.numpy(force=True) for output in found]

    return run
"""

_TORCH_COMPILED = """
def load(parameters):
    def bent(given):
        def outputs(*leaves):
            values = {{**given, **dict(zip(LEAVES, leaves))}}
            results = model(*{values})
            return tuple(results[i] for i in WEIGHTS)

        def gradients(*leaves):
            _, pull_back = torch.func.vjp(outputs, *leaves)
            return pull_back(tuple(given[weight] for weight in WEIGHTS.values()))

        leaves = tuple(given[name] for name in LEAVES)
        return torch.func.jvp(gradients, leaves, tuple(given[name] for name in LEAVES.values()))[1]

    compiled = {compiled}

    def run(*inputs):
        given = {{**dict(zip(INPUTS, inputs)), **parameters}}
        found = compiled({{name: torch.from_numpy(array) for name, array in given.items()}})
        return [output.numpy(force=True) for output in found]

    return run
"""

_TENSORFLOW = """
def load(parameters):
{decorator}    def bent(given):
        leaves = [given[name] for name in LEAVES]
        with tf.GradientTape() as outer:
            outer.watch(leaves)
            with tf.GradientTape() as inner:
                inner.watch(leaves)
                values = given
                outputs = model(*{values})
            found = inner.gradient(
                [outputs[i] for i in WEIGHTS],
                leaves,
                output_gradients=[given[weight] for weight in WEIGHTS.values()],
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            )
            gradients = [tf.convert_to_tensor(gradient) for gradient in found]  # from IndexedSlices, too
        found = outer.gradient(
            gradients,
            leaves,
            output_gradients=[given[name] for name in LEAVES.values()],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        return [tf.convert_to_tensor(bent) for bent in found]

    def run(*inputs):
        given = {{**dict(zip(INPUTS, inputs)), **parameters}}
        found = bent({{name: tf.constant(array) for name, array in given.items()}})
        return [bent.numpy() for bent in found]

    return run
"""

_JAX = """
def load(parameters):
    def bent(given):
        def outputs(*leaves):
            values = {{**given, **dict(zip(LEAVES, leaves))}}
            results = model(*{values})
            return [results[i] for i in WEIGHTS]

        def gradients(*leaves):
            _, pull_back = jax.vjp(outputs, *leaves)
            return pull_back([given[weight] for weight in WEIGHTS.values()])

        leaves = [given[name] for name in LEAVES]
        return jax.jvp(gradients, leaves, [given[name] for name in LEAVES.values()])[1]

    compiled = {compiled}

    def run(*inputs):
        given = {{**dict(zip(INPUTS, inputs)), **parameters}}
        with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
            found = compiled({{name: jnp.asarray(array) for name, array in given.items()}})
            return [np.asarray(bent) for bent in found]

    return run
"""

TORCH_EAGER = _TORCH_TWICE.format(values=VALUES)
TENSORFLOW_EAGER = _TENSORFLOW.format(values=VALUES, decorator="")
JAX_EAGER = _JAX.format(values=VALUES, compiled="bent")
JAX_JIT = _JAX.format(values=VALUES, compiled="jax.jit(bent)")


def torch_compiled(backend: str) -> str:
    """The whole computation, compiled: forwards over backwards, since compiled backward passes are not differentiated
    (torch.compile with aot_autograd does not currently support double backward)."""
    compiled = f'torch.compile(bent, backend="{backend}", fullgraph=True, dynamic=False)'
    return _TORCH_COMPILED.format(values=VALUES, compiled=compiled)


def tensorflow_function(options: str) -> str:
    """The whole computation as one tf.function."""
    return _TENSORFLOW.format(values=VALUES, decorator=f"    @tf.function{options}\n")


_REFUSALS: Patterns = (
    (
        "torch",
        "[Dd]erivative for .* is not implemented|differentiate twice a function that was marked with @once_differ",
        "no formula of the second derivative",
    ),
    *UNKNOWN,
    *NONE_AT_ALL,
    (
        "torch",
        "The solver failed because the input matrix is singular",
        "that of slogdet solves with the matrix, of which one in the stack is singular",
    ),
    (
        "jax",
        "(Differentiation|JVP|Forward-mode differentiation|Transpose) rule .*not implemented",
        "no rule of forward mode",
    ),
)
"""What a framework says that it does not differentiate."""

refusal = refusal_of(_REFUSALS)
"""The documented reason why a framework refused."""


def unsupported_by(name: str) -> Callable[[Target, Graph], str | None]:
    """Why a target cannot be asked for second derivatives of a graph by its programs of that name, or None: first ones
    are differentiated."""

    def unsupported(target: Target, graph: Graph) -> str | None:
        if name not in target.question_loads:
            return "no program of second derivatives is written"
        if any(type_.dtype in COMPONENT for type_ in graph.types.values()):
            return "second derivatives by way of complex numbers are not judged"
        return gradient.unsupported(target, graph)

    return unsupported


def program_by(name: str) -> Callable[[Target, Graph], str]:
    """The standalone program of the second derivatives, by a target's programs of that name."""

    def program(target: Target, graph: Graph) -> str:
        outputs = list(graph.outputs)
        seeds = {outputs.index(name): weight_name(name) for name in weights(graph)}
        leaves = {name: tangent_name(name) for name in tangents(graph)}
        further = {tangent_name(name): graph.types[name] for name in leaves}
        further |= {weight_name(name): graph.types[name] for name in weights(graph)}
        head = f"LEAVES = {leaves!r}  # leaf -> its tangent\n"
        head += f"WEIGHTS = {seeds!r}  # number of an output -> its weights\n"
        results = [leaf.type for leaf in differentiable_leaves(graph)]
        return target.text(graph, head + "\n" + target.question_loads[name], further, results)

    return program
