"""The model under PyTorch's automatic mixed precision on the CPU."""

from __future__ import annotations

from generators.graph import Graph
from generators.graphs import Style
from generators.inputs import FLOAT_CHOICES, MIXED_CHOICES
from generators.ops.spec import Call
from harness.backends import Target
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.arithmetic import autocast

_MODEL = """
once = model


def model(*tensors):
    with torch.autocast("cpu", dtype=torch.{dtype}):
        return once(*tensors)


"""


def program(target: Target, graph: Graph) -> str:
    """The target's own program, its model under autocast."""
    after = autocast.rewritten(graph)
    assert isinstance(after, Graph)  # `unsupported` says so before
    load = _MODEL.format(dtype=autocast.dtype(graph)) + target.load.strip()
    return target.text(graph, load, {}, [after.types[name] for name in graph.outputs])


def unsupported(target: Target, graph: Graph) -> str | None:
    """Why a target cannot be asked."""
    if target.dialect.name != "torch" or target.device != "cpu":
        return "autocast on the CPU is PyTorch's"
    reason = target.unsupported(graph)
    if reason:
        return reason
    after = autocast.rewritten(graph)
    if isinstance(after, str):
        return after
    return target.unsupported(after) or _states_dtype(target, graph, after)


def _states_dtype(target: Target, graph: Graph, after: Graph) -> str | None:
    """The program is that of the graph as drawn: what it says of dtypes must hold in the rewritten one, too."""
    nodes = {node.name: node for node in after.nodes}
    for node in graph.nodes:
        texts = []
        for other, types in ((node, graph.types), (nodes[node.name], after.types)):
            call = Call(tuple(types[name] for name in other.operands), other.attributes, other.type)
            texts.append(target.dialect.expression(node.op, node.operands, call))
        if texts[0] != texts[1]:
            return f"{node.op}: its program states the dtype"
    return None


def executed(graph: Graph) -> Graph:
    """The graph with its casts; as drawn where they cannot be told."""
    after = autocast.rewritten(graph)
    return after if isinstance(after, Graph) else graph


AUTOCAST = Question(
    autocast.NAME,
    autocast.expect,
    program,
    unsupported,
    prepare=autocast.prepare,
    executed=executed,
    inherits=(FORWARD.name,),
    joins=autocast.dtype,
    style=Style(("float32",), (FLOAT_CHOICES, FLOAT_CHOICES, FLOAT_CHOICES, MIXED_CHOICES)),
)

QUESTIONS = (AUTOCAST,)
