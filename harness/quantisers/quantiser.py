"""A quantiser: how a drawn graph is quantised by a framework's own tool, and who judges the model that comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

from generators.graph import COMPLEX, Graph, Node
from harness.backends.target.target import Target, types_listed
from harness.quantisers.cases import OPERATORS
from oracles.quantised.model import Judgement, RecordedModel

UNJUDGED = frozenset(("float16", "bfloat16", *COMPLEX))


def _nobody(record: RecordedModel) -> Judgement:
    raise NotImplementedError("a quantiser without a judge")


@dataclass(frozen=True, eq=False)
class Quantiser(Target):
    """A target whose `load` calibrates, quantises and runs, and returns what the helper function `recorded` makes of
    the quantised model and all its values. It may use INPUTS, PARAMETERS, RESULTS (the types of the graph's outputs)
    and SHARE (how much of the inputs is in the samples to calibrate on: below 1 some values saturate); %given
    stands for the names of the inputs.

    judge:  recomputes what the record says, without the framework
    allows: what the judge accepts beside one right level, and for what reason
    takes:  the operators that it quantises, where a graph without them shows nothing (empty: most of them)
    keeps:  which nodes of drawn graphs it can express (None: graphs are taken or refused as they are): inputs take the
            place of the others where few graphs would be left"""

    judge: Callable[[RecordedModel], Judgement] = _nobody
    allows: str = ""
    takes: tuple[str, ...] = ()
    keeps: Callable[[Graph, Node], bool] | None = None
    further: bool = False

    def expresses(self, operator: str) -> bool:
        return super().expresses(operator) and (self.further or operator in OPERATORS)

    def unsupported(self, graph: Graph) -> str | None:
        """Nor is there anything to say of a graph in which nothing is quantised. Levels stand for numbers of float32
        here: of half precision and of complex numbers most quantisers know nothing, and the judges no roundoff."""
        if other := sorted({type_.dtype for type_ in graph.types.values()} & UNJUDGED):
            return f"levels of {', '.join(other)} are not judged"
        if self.takes and not any(operator in self.takes for operator in graph.operators):
            return f"nothing of what {self.name} quantises"
        return super().unsupported(graph)

    def program(self, graph: Graph) -> str:
        """The text that quantises and runs. What it returns depends on the model, so that OUTPUTS is empty."""
        spelled = self.load.replace("%given", ", ".join(leaf.name for leaf in graph.inputs)).strip()
        results = types_listed(graph.types[name] for name in graph.outputs)
        load = f"RESULTS = {results}\nSHARE = {share(graph)}\n\n\n{spelled}"
        return self.text(graph, load, {}, [])


def share(graph: Graph) -> float:
    """For a quarter of the graphs the samples have half of the inputs' range."""
    return 0.5 if crc32(str(graph).encode()) % 4 == 0 else 1.0
