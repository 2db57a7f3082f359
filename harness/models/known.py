"""Known issues of models that are given: what is understood of variants that deviate, so that it hides nothing new. An
entry matches variants by their runner or conversions, and what they do."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from harness.conversions.edges import EDGES
from harness.conversions.formats import RUNNERS
from harness.execute.pool import Job, Pool
from harness.findings.known import entry
from harness.models.layer_errors import LayerErrors
from harness.models.results import Results
from harness.models.rows import Row
from harness.models.variants import ModelFile
from oracles.judge.outcome import Value


@dataclass(frozen=True)
class KnownModel(entry.Entry):
    """symptoms: keys of SYMPTOMS; runners: globs (none: any); edges: globs of which one matches one of the conversions
    (none: any, or none at all); operators: globs of which one matches the operator where the error begins, which has to
    be found then (none: any); nodes: globs of which one matches a node of the ONNX model (`nodes_of`), where runners do
    not show layers (none: any model); layers: classes of Keras of which the given model has a layer (none: any model);
    message: a regular expression found in the message; versions: of packages; upstream: link or "not yet reported"."""

    symptoms: tuple[str, ...]
    reason: str
    runners: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    message: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    upstream: str = "not yet reported"

    def explains(
        self,
        row: Row,
        layers: LayerErrors | None,
        versions: Mapping[str, str],
        classes: Sequence[str],
        nodes: Sequence[str] = (),
    ) -> bool:
        """Is this why a variant deviates? layers: its errors by layer, if they were looked at; classes: of the given
        model's layers; nodes: of its ONNX model."""
        variant = row.variant
        operators = [layer.op for layer in layers.blamed] if layers else []
        return (
            row.symptom in self.symptoms
            and (not self.runners or _any([variant.runner.name], self.runners))
            and (not self.edges or _any(variant.file.edges, self.edges))
            and (not self.operators or _any(operators, self.operators))
            and (not self.nodes or _any(nodes, self.nodes))
            and (not self.layers or _any(classes, self.layers))
            and re.search(self.message, row.message) is not None
            and all(
                name in versions and SpecifierSet(spec, prereleases=True).contains(versions[name])
                for name, spec in self.versions.items()
            )
        )


def matches(name: str, globs: Sequence[str]) -> bool:
    """Is a name one of these?"""
    return _any([name], globs)


def _any(names: Sequence[str], globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for name in names for glob in globs)


def load(root: Path = entry.FOLDER) -> tuple[KnownModel, ...]:
    """The entries on models in a folder of what is known. Raises KnownFileError naming the file and what is wrong."""
    return entry.load(root, "model", KnownModel, _check, stored=False)


def _check(data: Mapping[str, Any]) -> None:
    """Raises ValueError where something else than its keys, symptoms and message is wrong with an entry."""
    if not (data.get("runners") or data.get("edges")):
        raise ValueError("neither runners nor edges are named")
    for key, names in (("runners", RUNNERS), ("edges", EDGES)):
        for glob in data.get(key, ()):
            if not _any(list(names), [glob]):
                raise ValueError(f"{key}: nothing matches {glob!r}")
    versions = data.get("versions", {})
    for spec in versions.values():
        SpecifierSet(spec)


def _classes(model: ModelFile) -> list[str]:
    """Of all layers of a Keras model."""
    if model.format != "keras":
        return []
    with zipfile.ZipFile(model.path) as archive:
        return re.findall(r'"class_name": "(\w+)"', archive.read("config.json").decode())


_NODES = """import json

import numpy as np
import onnx

INPUTS, PARAMETERS = [], []


def described(graph, opsets):
    for node in graph.node:
        try:
            domain = "" if node.domain == "ai.onnx" else node.domain
            version = onnx.defs.get_schema(node.op_type, opsets.get(domain, 1), domain).since_version
        except onnx.defs.SchemaError:
            version = 0
        places = ",".join(str(place) for place, name in enumerate(node.input) if name)
        stated = ",".join(sorted(attribute.name for attribute in node.attribute))
        yield f"{node.op_type}-{version}({places})({stated})"
        for attribute in node.attribute:
            for inside in (attribute.g, *attribute.graphs):
                yield from described(inside, opsets)


def load(parameters):
    model = onnx.load(PATH, load_external_data=False)
    opsets = {"" if one.domain == "ai.onnx" else one.domain: one.version for one in model.opset_import}
    told = json.dumps(sorted(set(described(model.graph, opsets))))
    return lambda: [np.frombuffer(told.encode(), np.uint8)]
"""


def nodes_of(pool: Pool, path: Path) -> list[str]:
    """The nodes of an ONNX file, each by its operator, the version that defined it, the places of inputs that are there
    and the names of attributes: `LSTM-14(0,1,2,4)(hidden_size)`. Nothing where they cannot be told."""
    job = Job("reference", ("onnx",), f"PATH = {str(path.resolve())!r}\n{_NODES}", {}, reads=(path,))
    (found,) = pool.run([job], confirm=False)
    return json.loads(found.outputs[0].tobytes()) if isinstance(found, Value) else []


def explained(results: Results, issues: Sequence[KnownModel], nodes: Sequence[str] = ()) -> Results:
    """The same, with the known issue of each variant that deviates for one. nodes: of its ONNX model."""
    layers = {one.variant: one for one in results.layers}
    rows, classes = [], _classes(results.model)
    for row in results.rows:
        issue = None
        if row.deviates:
            seen = layers.get(row.variant.name)
            issue = next((one for one in issues if one.explains(row, seen, results.versions, classes, nodes)), None)
        rows.append(replace(row, known=issue.id) if issue else row)
    return replace(results, rows=tuple(rows))
