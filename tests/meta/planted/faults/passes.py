"""Compilers with a pass of ours that breaks one operator: TVM's pipeline, inductor's custom pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from generators.graphs import Case, seeded_case
from generators.ops import DRAWN
from harness.backends import TARGETS, Target
from harness.backends.target.passes import INDUCTOR, Switches
from harness.backends.target.text import swapped
from harness.questions.forward import FORWARD
from harness.search.campaign import operators_for

_TVM = """
@relax.expr_functor.mutator
class Swap(relax.PyExprMutator):
    def visit_call_(self, call):
        call = super().visit_call_(call)
        right = isinstance(call.op, tvm.ir.Op) and call.op.name == {operator!r}
        return relax.op.{wrong}(*call.args) if right else call


@tvm.transform.module_pass(opt_level=0, name="Planted")
class Planted:
    def transform_module(self, module, context):
        changed = Swap(module).visit_expr(module["main"])
        module = tvm.IRModule({{**module.functions}}, attrs=module.attrs)
        module["main"] = changed
        return module

"""

_INDUCTOR = """
def planted(graph):
    for node in graph.nodes:
        if node.op == "call_function" and str(node.target) == {operator!r}:
            node.target = torch.ops.aten.{wrong}.default


import torch._inductor.config

unbroken = load


def load(parameters):
    options = {{"post_grad_custom_post_pass": planted, "fx_graph_cache": False}}
    with torch._inductor.config.patch(options):
        run = unbroken(parameters)

    def broken(*inputs):
        with torch._inductor.config.patch(options):
            return run(*inputs)

    return broken
"""


@dataclass(frozen=True)
class PassFault:
    """operator: the drawn one that is broken; name: of the pass; target: whose pipeline has it."""

    operator: str
    name: str
    target: Target

    @property
    def named(self) -> str:
        """The operator, as generators call it."""
        return {"negative": "neg"}.get(self.operator, self.operator)


def in_tvm(operator: str, wrong: str, level: int) -> PassFault:
    """tvm-O<level> with a pass before the lowering that takes this operator of Relax for another."""
    good = TARGETS[f"tvm-O{level}"]
    assert good.switches
    load = _TVM.format(operator=f"relax.{operator}", wrong=wrong) + good.load
    load = swapped(load, ("relax.transform.LegalizeOps()", "Planted(), relax.transform.LegalizeOps()"))
    passes = good.switches.passes
    place = passes.index("DispatchSampling")
    switches = Switches((*passes[:place], "Planted", *passes[place:]), good.switches.without)
    return PassFault(operator, "Planted", replace(good, load=load, switches=switches))


def in_inductor(operator: str, wrong: str) -> PassFault:
    """Inductor with a custom pass that takes this operator of ATen for another."""
    good = TARGETS["torch-inductor"]
    name = "post_grad_custom_post_pass"
    load = good.load + _INDUCTOR.format(operator=f"aten.{operator}.default", wrong=wrong)
    return PassFault(
        operator, name, replace(good, load=load, switches=Switches((*INDUCTOR.passes, name), INDUCTOR.without))
    )


_UNARY = (
    *(("negative", "abs"), ("exp", "sin"), ("sqrt", "abs"), ("floor", "ceil"), ("sin", "cos"), ("cos", "sin")),
    *(("sigmoid", "exp"), ("abs", "negative"), ("ceil", "floor"), ("tan", "sin"), ("atan", "sin"), ("round", "floor")),
    *(("square", "abs"), ("sign", "abs")),
)

FAULTS: tuple[Callable[[], PassFault], ...] = (
    *(
        lambda pair=pair, level=level: in_tvm(*pair, level)
        for pair, level in zip(_UNARY, (3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1), strict=True)
    ),
    *(
        lambda pair=pair: in_inductor(*pair)
        for pair in (("neg", "abs"), ("exp", "sin"), ("floor", "ceil"), ("sin", "cos"), ("abs", "neg"), ("tan", "sin"))
    ),
)


def cases_with(fault: PassFault, seed: int) -> Iterator[Case]:
    """Drawn graphs of three to six nodes in which the operator is."""
    usable = operators_for(fault.target, DRAWN)
    few = [fault.named, *usable[seed % 7 :: 7]]
    for index in range(10_000):
        case = seeded_case(seed, index, 6, few, FORWARD.style)
        names = [node.op for node in case.graph.nodes]
        if fault.named in names and len(names) > 2 and FORWARD.why_not(fault.target, case.graph) is None:
            yield case
