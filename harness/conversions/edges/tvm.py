"""TVM's importers, each with the compilation of what it imports."""

from __future__ import annotations

from harness.conversions.edges.edge import Edge
from harness.conversions.formats.tvm import IMPORTERS

EDGES = tuple(
    Edge(
        f"tvm-{importer.format}",
        importer.format,
        "relax",
        importer.modules,
        importer.packages,
        importer.convert,
        refuses=importer.refuses,
    )
    for importer in IMPORTERS
)
