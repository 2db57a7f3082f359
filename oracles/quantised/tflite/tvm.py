"""TVM on models that TFLite's converter quantised: does it compute what the file says, each operator alone and
unoptimised, given what TFLite's reference kernels hand it, and the whole model at its highest level?"""

from __future__ import annotations

from oracles.quantised.model import Judgement, RecordedModel, beside, loss, rewritten, skipped
from oracles.quantised.tflite.quantiser import real_output, tensors_of
from oracles.quantised.tflite.real_numbers import computer


def judge(record: RecordedModel) -> Judgement:
    """Operators that the importer says it does not implement are counted as not judged, and so is a whole with one of
    them. Of the whole only the outputs are seen, and levels before them are worked out, of which those at a tie may be
    either of two."""
    found = Judgement()
    tensors, values = tensors_of(record), record.groups["source"]
    compute = computer(tensors, values)
    done = beside(found, record, "alone", "source", compute)
    skipped(
        found, record.nodes["source"], values, done | {name for name in values if name not in record.groups["alone"]}
    )
    whole = record.groups.get("O3")
    if not whole:
        found.skipped["whole models with operators that the importer lacks"] += 1
        return found
    made = {name for node in record.nodes["source"] for name in node.results}
    done = rewritten(found, record, "O3", "source", compute, [name for name in values if name not in made])
    skipped(found, record.nodes["source"], whole, done)
    if record.header["share"] == 1:
        exact = {str(i): array for i, array in record.groups["float"].items()}
        names = record.header["outputs"]
        found.loss = loss(exact, {str(i): real_output(whole, name, tensors) for i, name in enumerate(names)})
    return found
