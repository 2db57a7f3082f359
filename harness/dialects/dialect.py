"""A dialect prints a graph as the source text of an ordinary Python function."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from importlib import import_module
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from generators.graph import Graph, Node
from generators.ops import OPS
from generators.ops.spec import Call, Spelling, Unsupported, said

NOTHING: Mapping[Any, str] = MappingProxyType({})


class Spellings(dict[str, Spelling]):
    """By operator, where they do not stand in the operators' records. Pickled as what a module calls them, since
    functions that functions make cannot be. module, name: of the module's variable that is this table."""

    def __init__(self, module: str, name: str, spellings: Mapping[str, Spelling]) -> None:
        super().__init__(spellings)
        self._place = module, name

    def __reduce__(self) -> tuple[Callable[[str, str], Spellings], tuple[str, str]]:
        return _spellings_of, self._place


def _spellings_of(module: str, name: str) -> Spellings:
    return getattr(import_module(module), name)


@dataclass(frozen=True)
class Dialect:
    """name:     also the name of the field of `OpSpec` that holds the spellings
    imports:  import lines of every program
    dtypes:   dtype -> the expression that means it
    helpers:  files, or folders of files, whose functions spellings may call (`helper_sources`); a program carries the
              source of those that it uses
    context:  parameters of `model` before the graph's own (a builder, say)
    line:     how one node is bound to its name, with fields {name} and {expression}
    bfloat16, complexes: what programs with bfloat16, with complex numbers, say in place of another text of their
              `load`
    absent:   why it has none of the dtypes that are not among `dtypes`
    spellings: by operator, where they do not stand in the operators' records (made by functions: `Spellings`)"""

    name: str
    imports: str
    dtypes: Mapping[str, str]
    helpers: tuple[Path, ...]
    context: tuple[str, ...] = ()
    line: str = "{name} = {expression}"
    bfloat16: Mapping[str, str] = field(default_factory=dict)
    complexes: Mapping[str, str] = field(default_factory=dict)
    absent: str = ""
    spellings: Mapping[str, Spelling] | None = None

    def spelling(self, operator: str, call: Call) -> str | Unsupported:
        """What the operator's record says for these types and attributes."""
        spelling = self.written(operator)
        return said(spelling, call)

    def written(self, operator: str) -> Spelling:
        """What the dialect has for an operator, whatever its types."""
        if self.spellings is None:
            return getattr(OPS[operator], self.name)
        return self.spellings.get(operator, Unsupported(f"no spelling in the dialect {self.name}"))

    def expression(
        self, operator: str, names: tuple[str, ...], call: Call, numbers: Mapping[str, str] = NOTHING
    ) -> str | Unsupported:
        """The source text of one application to values known by `names`. numbers: attributes that are known by a name,
        too, and not written down."""
        if any(type_.dtype not in self.dtypes for type_ in (*call.operands, call.result)):
            return Unsupported(self.absent)
        spelling = self.spelling(operator, call)
        if not isinstance(spelling, str):
            return spelling
        fields: dict[str, object] = {
            "args": ", ".join(names),
            "shape": call.result.shape,
            "rank": call.result.rank,
            "dtype": self.dtypes[call.result.dtype],
            "name": repr(call.result.dtype),
        }
        for i, type_ in enumerate(call.operands):
            fields[f"shape{i}"], fields[f"rank{i}"] = type_.shape, type_.rank
            fields[f"dtype{i}"], fields[f"name{i}"] = self.dtypes[type_.dtype], repr(type_.dtype)
        # an attribute may be called like a field (`shape` of reshape), and then it is meant
        return spelling.format(*names, **{**fields, **{k: _Source(v) for k, v in call.attrs.items()}, **numbers})

    def unsupported(self, graph: Graph) -> str | None:
        """Why this dialect cannot express the graph (the first reason), or None."""
        for node in graph.nodes:
            text = self.node(graph, node)
            if isinstance(text, Unsupported):
                return f"{node.op}: {text.why}"
        return None

    def source(self, graph: Graph, load: str, numbers: Mapping[tuple[int, str], str] = NOTHING) -> str:
        """Helper functions, `def model(…)` and the text of `load`. numbers: names of attributes, by the place of their
        node, that the model takes as arguments, behind its leaves. Raises ValueError where `unsupported` gives a
        reason."""
        graph = self._renamed(graph)
        leaves = [leaf.name for leaf in (*graph.inputs, *graph.parameters)]
        lines = [f"def model({', '.join([*self.context, *leaves, *dict.fromkeys(numbers.values())])}):"]
        for place, node in enumerate(graph.nodes):
            text = self.node(graph, node, {key: name for (at, key), name in numbers.items() if at == place})
            if isinstance(text, Unsupported):
                raise ValueError(f"{self.name} cannot express {node}: {text.why}")
            lines.append("    " + self.line.format(name=node.name, expression=text))
        lines.append(f"    return ({', '.join(graph.outputs)},)")
        parts = ["\n".join(lines), load.strip()]
        return "\n\n\n".join([*self._used_helpers("\n".join(parts)), *parts]) + "\n"

    def _renamed(self, graph: Graph) -> Graph:
        """The graph with other names for values whose own mean something else where the operators are spelled: a module
        (`torch`), a function, what a spelling binds. `model` is called by place, so that nobody else sees them."""
        names = [value.name for value in (*graph.leaves, *graph.nodes)]
        neutral = {name: f"_value{number}_" for number, name in enumerate(names)}
        plain = renamed(graph, neutral)
        texts = [self.line, *self.context, *(str(self.node(plain, node)) for node in plain.nodes)]
        taken = set(re.findall(r"\w+", "\n".join(texts))) - set(neutral.values())
        clear: dict[str, str] = {}
        for name in names:
            new = name
            while new in taken or (new != name and new in neutral):
                new += "_"
            clear[name] = new
        return renamed(graph, clear)

    def node(self, graph: Graph, node: Node, numbers: Mapping[str, str] = NOTHING) -> str | Unsupported:
        """The source text of a node of the graph. numbers: as of `expression`."""
        call = Call(tuple(graph.types[o] for o in node.operands), node.attributes, node.type)
        return self.expression(node.op, node.operands, call, numbers)

    def _used_helpers(self, body: str) -> list[str]:
        """Sources of the helper functions that the text calls, directly or not, in file order."""
        available = self._helper_sources
        wanted: set[str] = set()
        pending = [body]
        while pending:
            called = set(re.findall(r"(?<![\w.])([A-Za-z_]\w*)", pending.pop())) & set(available)
            pending += [available[name] for name in called - wanted]
            wanted |= called
        return [source for name, source in available.items() if name in wanted]

    @cached_property
    def _helper_sources(self) -> dict[str, str]:
        return {name: text for path in self.helpers for name, text in helper_sources(path).items()}


def functions(name: str) -> tuple[Path, ...]:
    """The functions of the dialect, its names for those of `functions/shared/` among them, and these."""
    folder = Path(__file__).with_name("functions")
    return folder / name, folder / "shared"


def renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The graph with its values called otherwise. names: new by old, of all."""
    return Graph(
        tuple(replace(leaf, name=names[leaf.name]) for leaf in graph.leaves),
        tuple(
            replace(node, name=names[node.name], operands=tuple(names[operand] for operand in node.operands))
            for node in graph.nodes
        ),
        tuple(names[name] for name in graph.outputs),
    )


Kind = TypeVar("Kind", bound=Dialect)


def extended(dialect: Dialect, kind: type[Kind], **more: Any) -> Kind:
    """The dialect as one of a class that derives from it. more: the fields that this class adds."""
    return kind(**{one.name: getattr(dialect, one.name) for one in fields(Dialect)}, **more)


@cache
def helper_sources(path: Path) -> dict[str, str]:
    """Top-level functions and classes by name, as text, of a Python file or of those of a folder, `basic.py` first;
    these files are never imported."""
    found: dict[str, str] = {}
    inside = sorted(path.glob("[!_]*.py"), key=lambda file: (file.name != "basic.py", file.name))
    for file in inside if path.is_dir() else [path]:
        text = file.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                if node.name in found:
                    raise ValueError(f"{file.name}: there is another {node.name}")
                found[node.name] = ast.get_source_segment(text, node) or ""
    return found


class _Source:
    """Formats an attribute as Python source."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        special = isinstance(self.value, float) and not isfinite(self.value)
        return f'float("{self.value}")' if special else repr(self.value)
