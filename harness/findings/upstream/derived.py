"""Short programs of derivatives and of maps over a new axis, as users of each framework write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from generators.graphs import Case
from generators.inputs import Arrays
from harness.backends import Target
from harness.findings.upstream import relax
from harness.findings.upstream.parts import (
    DECORATORS,
    FAMILIES,
    bound,
    function,
    head,
    several,
    statements,
    tuple_of,
)
from harness.findings.upstream.seen import Seen, checks
from harness.questions import QUESTIONS
from oracles.derivatives.gradient import differentiable_leaves, weight_name, weights
from oracles.derivatives.jvp import moved, tangent_name


@dataclass(frozen=True)
class Parts:
    """What these programs are made of. lines: the nodes; leaves, fixed: names of what is differentiated by, and of the
    other leaves; inputs: of those that change with each run; outputs, seeds: results with weights, and their weights;
    tangents: of the leaves; moved: results with tangents; number: of the derivative that is wrong; decorator: of what
    is compiled ("": nothing)."""

    lines: list[str]
    leaves: list[str]
    fixed: list[str]
    inputs: list[str]
    outputs: list[str]
    seeds: list[str]
    tangents: list[str]
    moved: list[str]
    number: int
    decorator: str

    @property
    def wrong(self) -> str:
        """The leaf whose derivative is wrong."""
        return self.leaves[self.number]


def derived(question: str, target: Target, case: Case, seen: Seen) -> Iterator[list[str]]:
    """Programs of a question of WRITTEN, on a target that it is written for."""
    graph, asked = case.graph, QUESTIONS[question]
    arrays = asked.arrays(case)
    if question == "gradient" and target.library == "tvm":
        yield from relax.gradient(arrays, graph, seen)
        return
    maker = target.dialect.name
    write = WRITTEN[question][maker]
    leaves = [leaf.name for leaf in differentiable_leaves(graph)]
    outputs = list(weights(graph))
    parts = Parts(
        statements(graph, target.dialect), leaves, [x.name for x in graph.leaves if x.name not in leaves],
        [x.name for x in graph.inputs], outputs, [weight_name(name) for name in outputs],
        [tangent_name(name) for name in leaves], [graph.outputs[i] for i in moved(graph)], seen.output,
        DECORATORS[target.name],
    )  # fmt: skip
    for body in write(parts, list(graph.outputs)):
        named = _bound(arrays, body, maker, leaves if question in ("gradient", "hessian") else ())
        yield [*head(graph, target.dialect), *named, *body, *checks(seen, FAMILIES[maker])]


def _bound(arrays: Arrays, body: Sequence[str], maker: str, leaves: Sequence[str]) -> list[str]:
    """The arrays that are named. leaves: of PyTorch, those that torch.autograd.grad may be asked for."""
    text = "\n".join(body)
    words = set(re.findall(r"\w+", text))
    used = [name for name in arrays if name in words]
    lines = bound(arrays, used, maker)
    if maker != "torch" or "torch.autograd.grad" not in text:
        return lines
    return [
        f"{line[:-1]}, requires_grad=True)" if name in leaves else line for name, line in zip(used, lines, strict=True)
    ]


Write = Callable[[Parts, list[str]], Iterator[list[str]]]
"""Parts and names of the outputs -> lines from the leaves to `y`."""


def _torch_gradient(of: Parts, outputs: list[str]) -> Iterator[list[str]]:
    made, result = list(of.lines), several(of.outputs)
    if of.decorator:
        inputs = [*of.leaves, *of.fixed]
        made = [of.decorator, *function(of.lines, of.outputs, inputs), f"result = f({', '.join(inputs)})"]
        result = "result"
    for more in ("", ", allow_unused=True, materialize_grads=True"):
        yield [*made, f"y = torch.autograd.grad({result}, {of.wrong}, {several(of.seeds)}{more})[0]"]
    yield [*made, f"y = torch.autograd.grad({result}, {tuple_of(of.leaves)}, {several(of.seeds)})[{of.number}]"]


def _torch_hessian(of: Parts, outputs: list[str]) -> Iterator[list[str]]:
    leaves, pairs = several(of.leaves), zip(of.leaves, of.tangents, strict=True)
    if of.decorator:
        pull = f"torch.func.vjp(f, {', '.join(of.leaves)})[1]({several(of.seeds)})"
        yield [
            *function(of.lines, of.outputs, of.leaves),
            *function([f"gradient = {pull}"], ["gradient"], of.leaves, "gradient"),
            of.decorator,
            *_pushed("torch.func.jvp", "gradient", of),
            f"y = tangent({', '.join([*of.leaves, *of.tangents])})[{of.number}]",
        ]
        return
    for more in ("", ", allow_unused=True, materialize_grads=True"):
        yield [
            *of.lines,
            f"gradients = torch.autograd.grad({several(of.outputs)}, {leaves}, {several(of.seeds)}, "
            f"create_graph=True{more})",
            f"y = torch.autograd.grad(gradients, {of.wrong}, {several([tangent for _, tangent in pairs])}{more})[0]",
        ]


def _pushed(jvp: str, called: str, of: Parts, name: str = "tangent") -> list[str]:
    push = f"{jvp}({called}, {tuple_of(of.leaves)}, {tuple_of(of.tangents)})[1]"
    return function([f"result = {push}"], ["result"], [*of.leaves, *of.tangents], name)


def _jvp_by(jvp: str) -> Write:
    def write(of: Parts, outputs: list[str]) -> Iterator[list[str]]:
        result = [of.moved[of.number]]
        made = function(of.lines, result, of.leaves)
        if of.decorator:
            arguments = ", ".join([*of.leaves, *of.tangents])
            yield [*made, of.decorator, *_pushed(jvp, "f", of), f"y = tangent({arguments})"]
        else:
            yield [*made, f"y = {jvp}(f, {tuple_of(of.leaves)}, {tuple_of(of.tangents)})[1]"]

    return write


def _vmap_by(vmap: str) -> Write:
    def write(of: Parts, outputs: list[str]) -> Iterator[list[str]]:
        made, inputs = function(of.lines, [outputs[of.number]], of.inputs), ", ".join(of.inputs)
        if of.decorator:
            mapped = function([f"result = {vmap}(f)({inputs})"], ["result"], of.inputs, "mapped")
            yield [*made, of.decorator, *mapped, f"y = mapped({inputs})"]
        else:
            yield [*made, f"y = {vmap}(f)({inputs})"]

    return write


def _tangent_gradient_by(jvp: str, vjp: str) -> Write:
    def write(of: Parts, outputs: list[str]) -> Iterator[list[str]]:
        push = f"{jvp}(f, {tuple_of(of.leaves)}, {tuple_of(of.tangents)})[1]"
        pull = f"{vjp}(tangent, {', '.join(of.leaves)})[1]({several(of.seeds)})"
        made = [
            *function(of.lines, of.outputs, of.leaves),
            *function([f"result = {push}"], ["result"], of.leaves, "tangent"),
        ]
        if of.decorator:
            made += [of.decorator, *function([f"result = {pull}"], ["result"], of.leaves, "gradient")]
            pull = f"gradient({', '.join(of.leaves)})"
        yield [*made, f"y = {pull}[{of.number}]"]

    return write


def _tensorflow(
    of: Parts, body: list[str], result: str, arguments: Sequence[str], more: str = ""
) -> Iterator[list[str]]:
    """Statements, or a function of the arguments; once more with what makes a tensor of slices that are indexed. more:
    another expression of the result."""
    for last in filter(None, (result, f"tf.convert_to_tensor({result})", more)):
        if of.decorator:
            made = [f"def derivative({', '.join(arguments)}):", *(f"    {line}" for line in [*body, f"return {last}"])]
            yield [of.decorator, *made, f"y = derivative({', '.join(arguments)})"]
        else:
            yield [*body, f"y = {last}"]


def _block(opened: str, lines: Sequence[str]) -> list[str]:
    return [opened, *(f"    {line}" for line in lines)]


def _tensorflow_gradient(of: Parts, outputs: list[str]) -> Iterator[list[str]]:
    body = _block("with tf.GradientTape() as tape:", [f"tape.watch({several(of.leaves)})", *of.lines])
    result = f"tape.gradient({several(of.outputs)}, {of.wrong}, {several(of.seeds)})"
    of_all = f"tape.gradient({several(of.outputs)}, {tuple_of(of.leaves)}, {several(of.seeds)})[{of.number}]"
    yield from _tensorflow(of, body, result, [*of.leaves, *of.fixed, *of.seeds], of_all)


def _tensorflow_jvp(of: Parts, outputs: list[str]) -> Iterator[list[str]]:
    opened = f"with tf.autodiff.ForwardAccumulator({several(of.leaves)}, {several(of.tangents)}) as accumulator:"
    body, result = _block(opened, of.lines), f"accumulator.jvp({of.moved[of.number]})"
    yield from _tensorflow(of, body, result, [*of.leaves, *of.fixed, *of.tangents])


def _tensorflow_hessian(of: Parts, outputs: list[str]) -> Iterator[list[str]]:
    leaves = several(of.leaves)
    inner = _block("with tf.GradientTape() as inner:", [f"inner.watch({leaves})", *of.lines])
    pulled = f"gradients = inner.gradient({several(of.outputs)}, {leaves}, {several(of.seeds)})"
    body = _block("with tf.GradientTape() as outer:", [f"outer.watch({leaves})", *inner, pulled])
    result = f"outer.gradient(gradients, {of.wrong}, {several(of.tangents)})"
    yield from _tensorflow(of, body, result, [*of.leaves, *of.fixed, *of.seeds, *of.tangents])


def _tensorflow_vmap(of: Parts, outputs: list[str]) -> Iterator[list[str]]:
    given = "f" if len(of.inputs) == 1 else "lambda lane: f(*lane)"
    mapped = f"tf.vectorized_map({given}, {several(of.inputs)})"
    made = function(of.lines, [outputs[of.number]], of.inputs)
    if of.decorator:
        made += [of.decorator, *function([f"result = {mapped}"], ["result"], of.inputs, "mapped")]
        mapped = f"mapped({', '.join(of.inputs)})"
    yield [*made, f"y = {mapped}"]


def _jax_gradient(of: Parts, outputs: list[str]) -> Iterator[list[str]]:
    made, leaves = function(of.lines, of.outputs, of.leaves), ", ".join(of.leaves)
    pull = f"jax.vjp(f, {leaves})[1]({several(of.seeds)})[{of.number}]"
    if of.decorator:
        made += [of.decorator, *function([f"result = {pull}"], ["result"], of.leaves, "gradient")]
        pull = f"gradient({leaves})"
    yield [*made, f"y = {pull}"]


WRITTEN: dict[str, dict[str, Write]] = {
    "gradient": {"torch": _torch_gradient, "tensorflow": _tensorflow_gradient, "jax": _jax_gradient},
    "jvp": {"torch": _jvp_by("torch.func.jvp"), "tensorflow": _tensorflow_jvp, "jax": _jvp_by("jax.jvp")},
    "hessian": {"torch": _torch_hessian, "tensorflow": _tensorflow_hessian},
    "tangent_gradient": {"torch": _tangent_gradient_by("torch.func.jvp", "torch.func.vjp")},
    "vmap": {"torch": _vmap_by("torch.func.vmap"), "tensorflow": _tensorflow_vmap, "jax": _vmap_by("jax.vmap")},
}
"""By question and dialect."""
