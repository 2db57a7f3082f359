"""TVM on models of QDQ pairs: does it compute what the nodes of the model say, operator by operator with everything
shown and nothing fused, and as a whole at its highest level?"""

from __future__ import annotations

from oracles.quantised.model import Judgement, RecordedModel, follow, loss, rewritten, skipped
from oracles.quantised.onnx import integers as onnx_integers
from oracles.quantised.onnx.quantiser import numbers


def judge(record: RecordedModel) -> Judgement:
    """TVM has no kernels of integers for such pairs: it quantises, dequantises and computes with float32 between, so
    that both levels owe the same as the model. At the highest one only the outputs are seen, and levels before them
    are worked out, of which those at a tie may be either of two."""
    found = Judgement()
    done = follow(found, record, "O0", onnx_integers.compute)
    skipped(found, record.nodes["O0"], record.groups["O0"], done)
    done = rewritten(found, record, "O3", "source", onnx_integers.compute, record.groups["source"])
    skipped(found, record.nodes["source"], record.groups["O3"], done)
    numbers(found, record)
    if record.header["share"] == 1:
        names = record.header["outputs"]
        found.loss = loss({n: record.groups["float"][n] for n in names}, record.groups["O3"])
    return found
