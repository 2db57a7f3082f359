"""TVM's importers, each with the compilation of what it imports."""

from __future__ import annotations

from harness.conversions.edges.edge import Edge
from harness.conversions.formats.tvm import IMPORTERS

EDGES = tuple(
    Edge(
        importer.name,
        importer.format,
        "relax",
        importer.modules,
        importer.packages,
        importer.convert,
        refuses=importer.refuses,
        on_request=importer.on_request,
    )
    for importer in IMPORTERS
)
