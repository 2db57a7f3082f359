"""Models that TFLite's converter quantised in another back end: does that compute what the file says, each operator
alone, given what TFLite's reference kernels hand it, and the whole model?"""

from __future__ import annotations

from oracles.quantised.model import Compute, Judgement, RecordedModel, beside, loss, rewritten, skipped
from oracles.quantised.tflite import kernels, real_numbers
from oracles.quantised.tflite.quantiser import real_output, tensors_of


def tvm(record: RecordedModel) -> Judgement:
    """TVM computes with real numbers between dequantising and quantising."""
    return _judged(record, real_numbers.computer(tensors_of(record), record.groups["source"]))


def xnnpack(record: RecordedModel) -> Judgement:
    """XNNPACK, and TFLite's built-in kernels for what that does not take."""
    return _judged(record, kernels.computer(tensors_of(record), "xnnpack", record.groups["source"]))


def _judged(record: RecordedModel, compute: Compute) -> Judgement:
    """Operators that the back end says it does not implement are counted as not judged, and so is a whole with one of
    them. Of the whole only the outputs are seen, and levels before them are worked out, of which those at a tie may be
    either of two."""
    found = Judgement()
    values, nodes = record.groups["source"], record.nodes["source"]
    alone, whole = record.groups.get("alone", {}), record.groups.get("whole")
    done = beside(found, record, "alone", "source", compute)
    skipped(found, nodes, alone, done)
    if not whole:
        found.skipped["whole models with operators that are not taken"] += 1
        return found
    made = {name for node in nodes for name in node.results}
    done = rewritten(found, record, "whole", "source", compute, [name for name in values if name not in made])
    skipped(found, nodes, whole, done)
    if record.header["share"] == 1:
        exact, tensors = {str(i): array for i, array in record.groups["float"].items()}, tensors_of(record)
        names = record.header["outputs"]
        found.loss = loss(exact, {str(i): real_output(whole, name, tensors) for i, name in enumerate(names)})
    return found
