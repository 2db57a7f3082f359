"""Programs that update a state over several steps: buffers of PyTorch, variables of TensorFlow, buffers that are
donated to JAX, and, everywhere else, a new state that is returned and given to the next step, like the cache of a
decoder. STATE of a program: the name of each leaf that is written, and the number of the output that holds what it
becomes, where the program returns that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from generators.graph import Graph, Node
from generators.ops import call_of
from generators.ops.spec import Unsupported
from harness.backends.target.target import Target
from harness.dialects import TENSORFLOW
from harness.dialects.dialect import NOTHING, Dialect, extended
from oracles.questions import cells, state

_TORCH = """
def load(parameters):
    compiled = {compiled}

    def run(*inputs):
        leaves = {{name: torch.from_numpy(np.array(array)) for name, array in zip(INPUTS, inputs)}}
        held = []
        with torch.no_grad():
            for _ in range({steps}):
                outputs = compiled(*leaves.values())
                held += [output.clone() for output in [*outputs, *[leaves[name] for name in STATE]]]
        return [output.numpy() for output in held]

    return run
"""

_EXPORT = """
class Module(torch.nn.Module):
    def forward(self, *inputs):
        return model(*inputs)


def load(parameters):
    def run(*inputs):
        leaves = {{name: torch.from_numpy(np.array(array)) for name, array in zip(INPUTS, inputs)}}
        held = []
        with torch.no_grad():
            given = tuple(leaf.clone() for leaf in leaves.values())
            exported = torch.export.export(Module(), given).run_decompositions().module()
            for _ in range({steps}):
                outputs = exported(*leaves.values())
                held += [output.clone() for output in [*outputs, *[leaves[name] for name in STATE]]]
        return [output.numpy() for output in held]

    return run
"""

_TENSORFLOW = """
def load(parameters):
    def run(*inputs):
        leaves = [
            tf.Variable(array) if name in STATE else tf.constant(array) for name, array in zip(INPUTS, inputs)
        ]

{decorator}        def step(*given):
            given = dict(zip(INPUTS, leaves)) | dict(zip([name for name in INPUTS if name not in STATE], given))
            return model(*given.values())

        constants = [leaf for name, leaf in zip(INPUTS, leaves) if name not in STATE]
        held = []
        for _ in range({steps}):
            outputs = step(*constants)
            held += [output.numpy() for output in outputs]
            held += [leaf.numpy() for name, leaf in zip(INPUTS, leaves) if name in STATE]
        return held

    return run
"""
"""Variables are captured by the function, as those of a layer are."""

_JAX = """
def load(parameters):
    places = [list(INPUTS).index(name) for name in STATE]
    compiled = jax.jit(model, donate_argnums=places)

    def run(*inputs):
        with jax.default_device(jax.devices("cpu")[0]):  # also where there is a GPU
            leaves = [jnp.array(array, copy=True) for array in inputs]
            held = []
            for _ in range({steps}):
                outputs = compiled(*leaves)
                held += [np.array(output) for output in outputs]
                for place, number in zip(places, STATE.values()):
                    leaves[place] = outputs[number]
        return held

    return run
"""
"""The memory of the old state may be that of the new one."""

_RETURNED = """

once = load
OUTPUTS = EVERY_OUTPUT  # what the program of the target reads is its own


def load(parameters):
    compiled = once(parameters)

    def run(*inputs):
        given, held = dict(zip(INPUTS, inputs)), []
        for _ in range({steps}):
            outputs = [np.array(output) for output in compiled(*given.values())]
            held += outputs
            given |= {{name: outputs[number] for name, number in STATE.items()}}
        return held

    return run
"""
RETURNED = _RETURNED.format(steps=state.STEPS)
"""What is added to the program of any target, whose graph returns the new state."""

TORCH_EXPORT = _EXPORT.format(steps=state.STEPS)
TENSORFLOW_EAGER = _TENSORFLOW.format(decorator="", steps=state.STEPS)
JAX_DONATED = _JAX.format(steps=state.STEPS)


def torch(compiled: str) -> str:
    """How a target with this compiler runs steps."""
    return _TORCH.format(compiled=compiled, steps=state.STEPS)


def tensorflow_function(options: str) -> str:
    """A step as one tf.function."""
    return _TENSORFLOW.format(decorator=f"        @tf.function{options}\n", steps=state.STEPS)


@dataclass(frozen=True)
class Variables(Dialect):
    """The dialect of TensorFlow, in which the state is variables. plain: without."""

    plain: Dialect = TENSORFLOW

    def node(self, graph: Graph, node: Node, numbers: Mapping[str, str] = NOTHING) -> str | Unsupported:
        """The source text of a node; variables are read where they are used."""
        written, index = state.written(graph), graph.nodes.index(node)
        if node.op == cells.WRITE:
            to, what = node.operands
            if index and _part(graph, index - 1):
                return what
            return f"{to}.assign({f'{what}.read_value()' if what in written else what})"
        reads = {name: f"{name}.read_value()" for name in written}
        if _part(graph, index):
            to, what = node.operands
            axis, start, step = (int(str(node.attributes[key])) for key in ("axis", "start", "step"))
            stop = start + (graph.types[what].shape[axis] - 1) * step + 1
            return f"{to}[{':, ' * axis}{start}:{stop}:{step}].assign({reads.get(what, what)})"
        text = self.plain.node(graph, node, numbers)
        if isinstance(text, Unsupported) or not set(node.operands) & set(written):
            return text
        return self.plain.expression(
            node.op, tuple(reads.get(name, name) for name in node.operands), call_of(graph, index), numbers
        )


def _part(graph: Graph, index: int) -> bool:
    """Does the node compute a leaf with a part of it changed, which the next node writes over that leaf?"""
    if index + 1 >= len(graph.nodes):
        return False
    node, after = graph.nodes[index : index + 2]
    if node.op != "slice_update" or after.op != cells.WRITE or after.operands != (node.operands[0], node.name):
        return False
    used = sum(other.operands.count(node.name) for other in graph.nodes) + graph.outputs.count(node.name)
    return used == 1 and int(str(node.attributes["axis"])) >= 0 and graph.types[node.operands[1]].size > 0


def with_variables(target: Target) -> Target:
    """The target, whose programs write to variables."""
    return replace(target, dialect=extended(target.dialect, Variables, plain=target.dialect))
