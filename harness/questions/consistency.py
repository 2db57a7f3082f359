"""One operator in several ways in one process: by the target, by the lowest level of its compiler, without
parameters, and at other places of longer tensors."""

from __future__ import annotations

from collections.abc import Sequence

from generators.graph import Graph
from harness.backends import TARGETS, Target
from harness.backends.target.text import renamed
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.judge.outcome import Rejected
from oracles.questions import consistency

_DRIVER = '''

OTHERS = {others!r}  # programs, by what they are beside this one
LENGTHS = {lengths!r}  # of the outputs of "lanes", by the number of the output of this program
OUTPUTS = [("uint8", shape) for shape in {shapes!r}] * {checks}
LEAST = float("{least}")  # a zero and a number of that size or more differ in kind
LARGEST = {{"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}}
once = load


def load_other(text, given):
    """Another program, compiled for these values of its parameters; what it takes and returns are values by name."""
    space = {{"__name__": "program"}}
    exec(text, space)
    run = space["load"]({{name: given[name] for name in space["PARAMETERS"]}})
    return lambda arrays: [np.array(out) for out in run(*[arrays[name] for name in space["INPUTS"]])]


def kinds(a, b):
    """How elements differ: 1 NaN, 2 an infinity, 3 a sign, 4 an integer, 5 a zero; 0: not, or by rounding only."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return np.zeros(a.shape, np.uint8)  # one of them is wrong, which is another question
    if a.dtype.kind in "biu":
        return np.where(a != b, 4, 0).astype(np.uint8)
    largest = LARGEST.get(str(a.dtype), 1.7976931348623157e308)
    a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        infinite = (np.isinf(a) != np.isinf(b)) | (np.isinf(a) & np.isinf(b) & (a != b))
        rounded = (np.abs(np.where(np.isinf(a), b, a)) > largest / 2) & (np.sign(a) == np.sign(b))
        sign = np.isfinite(a) & np.isfinite(b) & (np.sign(a) * np.sign(b) < 0)
        zero = np.isfinite(a) & np.isfinite(b) & ((a == 0) != (b == 0)) & (np.abs(a + b) >= LEAST)
    nan = np.isnan(a) != np.isnan(b)
    return np.where(nan, 1, np.where(infinite & ~rounded, 2, np.where(sign, 3, np.where(zero, 5, 0)))).astype(
        np.uint8
    )


def tiled(array, shape, length):
    """All elements, broadcast to a shape, one after the other, until so many are there."""
    return np.resize(np.broadcast_to(array, shape).ravel(), length).astype(array.dtype)


def load(parameters):
    own = once(parameters)
    others = {{}}

    def run(*inputs):
        arrays = {{**parameters, **dict(zip(INPUTS, inputs))}}
        first = [np.array(out) for out in own(*inputs)]
        found = {{name: [np.zeros(out.shape, np.uint8) for out in first] for name in {names!r}}}
        for name, (text, shapes) in OTHERS.items():
            given = arrays
            if name == "lanes":
                given = {{leaf: tiled(arrays[leaf], shape, length) for leaf, (shape, length) in shapes.items()}}
            try:
                if name not in others:
                    others[name] = load_other(text, given)
                results = others[name](given)
            except Exception as error:
                error.add_note(f"in step {{name}}: another program than the target's own")
                raise
            if name != "lanes":
                found[name] = [kinds(a, b) for a, b in zip(first, results)]
                continue
            for (place, length), out in zip(LENGTHS.items(), results):
                shown = kinds(tiled(first[place], first[place].shape, length), out)
                size = first[place].size
                whole = np.concatenate([shown, np.zeros(-len(shown) % size, np.uint8)]).reshape(-1, size)
                found[name][place] = whole.max(axis=0).reshape(first[place].shape)
        return [flags for name in {names!r} for flags in found[name]]

    return run
'''


def program(target: Target, graph: Graph) -> str:
    """The target's own program, and the others as text. All leaves that "lanes" takes are arguments."""
    others: Others = {}
    lowest = _lowest(target)
    if lowest and not FORWARD.why_not(lowest, graph):
        others["level"] = lowest.program(graph), {}
    plain = consistency.without_parameters(graph)
    if graph.parameters and not FORWARD.why_not(target, plain):
        others["roles"] = target.program(plain), {}
    lanes, lengths = consistency.longer(graph), {}
    if lanes and not FORWARD.why_not(target, lanes):
        nodes = {node.name: node for node in graph.nodes}
        shapes = {name: (nodes[node.name].type.shape, node.type.size) for node in lanes.nodes for name in node.operands}
        others["lanes"] = target.program(lanes), shapes
        lengths = {graph.outputs.index(name): lanes.types[name].size for name in lanes.outputs}
    shapes = [graph.types[name].shape for name in graph.outputs]
    return beside(target.program(graph), others, lengths, shapes, tuple(consistency.CHECKS))


Others = dict[str, tuple[str, dict[str, tuple[tuple[int, ...], int]]]]
"""By check: the text of another program, and of "lanes" what its leaves are made of: a shape, and how many elements."""


def beside(
    text: str,
    others: Others,
    lengths: dict[int, int],
    shapes: list[tuple[int, ...]],
    checks: Sequence[str],
    *,
    zeros: bool = False,
) -> str:
    """The program that compares what this text computes with what the others do, for each of the checks.

    lengths: of the outputs that "lanes" has, by their number in the text's own; shapes: of these; zeros: is a zero
    beside a number that no rounding makes of it a difference in kind?"""
    return renamed(text, "OUTPUTS", "OWN_OUTPUTS") + _DRIVER.format(
        others=others,
        lengths=lengths,
        shapes=shapes,
        checks=len(checks),
        names=tuple(checks),
        least=consistency.ROUNDED_AWAY if zeros else float("inf"),
    )


def _lowest(target: Target) -> Target | None:
    """The lowest level of the target's compiler that its worker runs, if that is another."""
    alike = [
        one
        for one in TARGETS.values()
        if (one.level.compiler, one.framework, one.environment, one.device)
        == (target.level.compiler, target.framework, target.environment, target.device)
        and not one.arithmetic
    ]
    lowest = min(alike, key=lambda one: one.level.number, default=target)
    return lowest if lowest.level.number < target.level.number else None


def unsupported(target: Target, graph: Graph) -> str | None:
    """Why a target cannot be asked."""
    return consistency.unsupported(graph) or target.unsupported(graph)


def refusal(target: Target, outcome: Rejected) -> str | None:
    """What another program raises is what the forward question says of that."""
    another = "another program than the target's own" in outcome.message
    return "a program that it is compared with is refused, which the forward question judges" if another else None


CONSISTENCY = Question(
    consistency.NAME,
    consistency.expect,
    program,
    unsupported,
    prepare=consistency.prepare,
    refusal=refusal,
    inherits=(FORWARD.name,),
    concerns=consistency.concerns,
    worth=consistency.worth,
    large=True,
)

QUESTIONS = (CONSISTENCY,)
