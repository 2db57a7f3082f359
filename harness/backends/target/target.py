"""A target: one way of compiling and running a dialect's programs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from generators.graph import COMPONENT, Graph, Node, TensorType
from generators.ops import OPS, SAID_OTHERWISE
from generators.ops.spec import Unsupported
from harness.backends.target import refusals
from harness.backends.target.passes import Switches
from harness.dialects.dialect import NOTHING, Dialect
from oracles.arithmetic.fast_math import Arithmetic
from oracles.judge.outcome import Rejected


@dataclass(frozen=True)
class Level:
    """A place among the optimisation levels of one compiler; level 0 optimises least."""

    compiler: str
    number: int


_UNWRITTEN = Unsupported("no program for its gradients is written")


def _promoted(graph: Graph, node: Node) -> tuple[str, str]:
    """The operator that this one is once its operands are promoted, and the dtype that they are promoted to."""
    name, dtype = node.op, node.type.dtype
    while (promotes := OPS[name].promotes) is not None:
        name, dtype = OPS[name].base, promotes(tuple(graph.types[o] for o in node.operands), dict(node.attrs))
    return name, dtype


@dataclass(frozen=True, eq=False)
class Target:
    """name:      e.g. tvm-O2
    framework: the worker that runs it, e.g. tvm, on another device LIBRARY-DEVICE; targets of one framework and
               environment share a worker
    modules:   what that worker imports before its first program
    load:      source of `def load(parameters)`, which compiles `model` and returns a function from input
               arrays to a list of output arrays. It may use INPUTS, PARAMETERS and OUTPUTS of the program
    packages:  PyPI distributions and the least version that this was written for
    sample_every: in a hunt over many targets, this one runs on one case in `sample_every` (slow compilers)
    refuses:   what the back end does not implement although its dialect can say it: (operator, an operator's
               "name attribute=value" or *, dtype of the result or of operand 0, or of any that is promoted) -> why
    refusals_file: the file of refusals/ that says the same of the rare dtypes, measured on the first
               target that names it (empty: none)
    declines:  regular expressions of "class: message" of exceptions in which it says that it does not implement
               something -> why: counted as unsupported, not found wrong
    device:    "cpu", or "cuda" for what needs a GPU
    cpu:       a feature that the processor has to have (as in /proc/cpuinfo; empty: none)
    symbolic:  source of `def compile_once(parameters)`, which compiles `model` with symbolic dimensions and returns
               a function from a size and input arrays to a list of output arrays (empty: there is no such way). It
               may use ARGUMENTS, RESULTS, PARAMETERS and SIZES of the program (`harness/questions/dynamic.py`)
    gradient:  like `load`, for the gradients (`programs/gradient.py`), or why there are none
    question_loads: like `load`, by the name of another question that has a program of its own
    arithmetic: its rules, where they allow more than the ordinary ones (`arithmetic.py`)
    environment: whose interpreter runs it, by name (`harness/execute/environments.py`; empty: Dissent's own)
    opt_in:    only globs other than `*` choose it: too slow, or not understood well enough, for every run
    inherits:  names of targets whose known issues hold here, too: it has a part in common with them
    switches:  passes of its compiler that a program can leave out (None: there are none)
    off:       those that its programs do leave out"""

    name: str
    framework: str
    modules: tuple[str, ...]
    dialect: Dialect
    load: str
    packages: Mapping[str, str]
    level: Level
    sample_every: int = 1
    refuses: Mapping[tuple[str, str], str] = field(default_factory=dict)
    refusals_file: str = ""
    declines: Mapping[str, str] = field(default_factory=dict)
    device: str = "cpu"
    cpu: str = ""
    symbolic: str = ""
    gradient: str | Unsupported = _UNWRITTEN
    question_loads: Mapping[str, str] = field(default_factory=dict)
    arithmetic: Arithmetic | None = None
    environment: str = ""
    opt_in: bool = False
    inherits: tuple[str, ...] = ()
    switches: Switches | None = None
    off: tuple[str, ...] = ()

    def elsewhere(self, environment: str) -> Target:
        """The same in another environment, by the name TARGET@ENVIRONMENT; a compiler of its own."""
        level = replace(self.level, compiler=f"{self.level.compiler}@{environment}")
        return replace(self, name=f"{self.name}@{environment}", environment=environment, level=level)

    def without(self, off: Collection[str]) -> Target:
        """The same target without these passes, too. Its name says so: tvm-O3~FuseOps~FuseTIR. Raises ValueError for
        a pass that it has not."""
        known = self.switches.passes if self.switches else ()
        unknown = [name for name in off if name not in known]
        if unknown:
            raise ValueError(f"{self.name} has no pass {unknown[0]!r} that can be left out; known: {', '.join(known)}")
        gone = tuple(name for name in known if name in off or name in self.off)
        return replace(self, name="~".join((self.whole, *gone)), off=gone)

    def complete(self) -> Target:
        """The same target with all its passes."""
        return replace(self, name=self.whole, off=())

    @property
    def foreign(self) -> bool:
        """Does it run `elsewhere`, in an environment that its programs were not written for?"""
        return "@" in self.name

    @property
    def library(self) -> str:
        """The framework whose rules hold, whatever the device: torch of torch-cuda."""
        return self.framework.removesuffix(f"-{self.device}")

    @property
    def worker(self) -> tuple[str, str]:
        """Which worker runs it: of its framework, in its environment."""
        return self.framework, self.environment

    @property
    def whole(self) -> str:
        """The name of the target with all its passes."""
        return self.name.split("~")[0]

    @property
    def label(self) -> str:
        """What it is counted as: tvm-O3, or tvm-O3~* for whatever tvm-O3 leaves out."""
        return f"{self.whole}~*" if self.off else self.name

    def expresses(self, operator: str) -> bool:
        """Can its dialect say the operator for some types?"""
        return not isinstance(self.dialect.written(operator), Unsupported)

    def unsupported(self, graph: Graph) -> str | None:
        """Why this target cannot run the graph, or None. Every reason was written down by somebody."""
        return self.dialect.unsupported(graph) or self.refused(graph)

    def refused(self, graph: Graph) -> str | None:
        """Why this target refuses an operator of the graph that a dialect can express, or None: by `refuses` and
        `refusals_file`."""
        for node in graph.nodes:
            dtypes = [node.type.dtype, *(graph.types[o].dtype for o in node.operands)]
            names = [node.op, *([OPS[node.op].base] if node.op in SAID_OTHERWISE else [])]
            forms = [*names, *(f"{name} {key}={value}" for name in names for key, value in node.attrs), "*"]
            for dtype in dtypes if OPS[node.op].promotes else dtypes[:2]:
                why = next((self.refuses[form, dtype] for form in forms if (form, dtype) in self.refuses), None)
                if why:
                    return f"{node.op}: {why}"
            for dtype in dtypes:
                for name in names:
                    why = refusals.why(self.refusals_file, name, dtype)
                    if why:
                        return f"{node.op} of {dtype}: {why}"
            if OPS[node.op].promotes:
                name, dtype = _promoted(graph, node)
                why = self.refuses.get((name, dtype)) or refusals.why(self.refusals_file, name, dtype)
                if why:
                    return f"{node.op}, which is {name} of {dtype}: {why}"
        return None

    def declined(self, outcome: Rejected) -> str | None:
        """Why an exception is a documented refusal, or None."""
        text = f"{outcome.kind}: {outcome.message}"
        return next((why for said, why in self.declines.items() if re.search(said, text)), None)

    def program(self, graph: Graph) -> str:
        """The source text of a standalone program: `load(parameters)` returns `run(*inputs) -> outputs`."""
        return self.text(graph, self.load, {}, [graph.types[name] for name in graph.outputs])

    def text(
        self,
        graph: Graph,
        load: str,
        further: Mapping[str, TensorType],
        outputs: Sequence[TensorType],
        given: Graph | None = None,
        numbers: Mapping[tuple[int, str], str] = NOTHING,
    ) -> str:
        """A program with this `load`, which returns outputs of these types and takes further inputs after the
        graph's own. given: the graph whose leaves have the types that the program gets, if the model's are others;
        numbers: as of `Dialect.source`."""
        leaves = given or graph
        inputs = {**{leaf.name: leaf.type for leaf in leaves.inputs}, **further}
        imports, load = self.imports_and_load(graph, load, [*outputs, *(leaf.type for leaf in leaves.leaves)])
        header = [
            imports,
            "",
            f"TARGET = {self.name!r}",
            "# name: (dtype, shape), in the order that the model takes them",
            f"INPUTS = {types_text(inputs.items())}",
            f"PARAMETERS = {types_text((leaf.name, leaf.type) for leaf in leaves.parameters)}",
            f"OUTPUTS = {types_listed(outputs)}",
        ]
        return self.with_switches("\n".join(header) + "\n\n\n" + self.dialect.source(graph, load, numbers))

    def with_switches(self, text: str) -> str:
        """The text of a program, without the passes that this target leaves out."""
        return self.switches.without(text, self.off) if self.switches and self.off else text

    def imports_and_load(self, graph: Graph, load: str, further: Sequence[TensorType] = ()) -> tuple[str, str]:
        """The import lines, and `load` as it has to read where numpy does not know a dtype of the graph, or a further
        one, or the framework keeps it in a way of its own."""
        imports, types = self.dialect.imports, (*graph.types.values(), *further)
        if any(type_.dtype in COMPONENT for type_ in types):
            for plain, said in self.dialect.complexes.items():
                load = load.replace(plain, said)
        if any(type_.dtype == "bfloat16" for type_ in types):
            imports += "\nimport ml_dtypes  # numpy knows bfloat16 by it"
            for plain, said in self.dialect.bfloat16.items():
                load = load.replace(plain, said)
        return imports, load


def types_listed(types: Iterable[TensorType]) -> str:
    """Types in order, as Python source."""
    return repr([(t.dtype, t.shape) for t in types])


def types_text(pairs: Iterable[tuple[str, TensorType]]) -> str:
    """Names with their types, as Python source."""
    return "{" + ", ".join(f"{name!r}: ({t.dtype!r}, {t.shape!r})" for name, t in pairs) + "}"
