"""The model as a Keras layer with a mixed-precision policy."""

from __future__ import annotations

import re

from generators.graph import Graph
from harness.backends import Target
from harness.questions.dtypes.autocast import AUTOCAST
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.arithmetic import policy

_LAYER = """
import keras


class Network(keras.layers.Layer):
    \"\"\"Its variables keep their dtypes; what it computes has the policy's.\"\"\"

    def __init__(self, parameters):
        super().__init__(dtype="mixed_{dtype}")
        self.held = [keras.Variable(parameters[name], dtype=PARAMETERS[name][0]) for name in PARAMETERS]

    def call(self, *tensors):
        return model(*tensors, *[tf.convert_to_tensor(variable) for variable in self.held])


"""
_START = "def load(parameters):"
_BOUND = "bound = [tf.constant(parameters[name]) for name in PARAMETERS]"


def program(target: Target, graph: Graph) -> str:
    """The target's own program, of a layer in place of the model."""
    after = policy.narrowed(graph)
    assert after is not None  # `unsupported` says so before
    assert _START in target.load
    assert _BOUND in target.load
    load = re.sub(rf"\n *{re.escape(_BOUND)}", "", target.load.strip()).replace("model(", "network(")
    load = load.replace(_START, f"{_START}\n    network, bound = Network(parameters), []")
    layer = _LAYER.format(dtype=policy.dtype(graph)).lstrip()
    return target.text(after, layer + load, {}, [after.types[name] for name in graph.outputs], given=graph)


def unsupported(target: Target, graph: Graph) -> str | None:
    """Why a target cannot be asked."""
    if target.dialect.name != "tensorflow":
        return "layers with a policy are Keras', written for TensorFlow"
    if not graph.inputs:
        return "a layer takes an input"
    after = policy.narrowed(graph)
    if after is None:
        return f"an operator of it takes no {policy.dtype(graph)}"
    return target.unsupported(graph) or target.unsupported(after)


def executed(graph: Graph) -> Graph:
    """The graph in the compute dtype; as drawn where it takes none."""
    return policy.narrowed(graph) or graph


POLICY = Question(
    policy.NAME,
    policy.expect,
    program,
    unsupported,
    executed=executed,
    inherits=(FORWARD.name,),
    joins=policy.dtype,
    style=AUTOCAST.style,
)

QUESTIONS = (POLICY,)
