"""Writes the tests that come with onnx into a folder: a model each, and the inputs and outputs of each of its sets."""

import re
import warnings
from pathlib import Path

import onnx
from onnx import TensorProto, numpy_helper


def arrays(values):
    return [numpy_helper.to_array(value) if isinstance(value, TensorProto) else value for value in values]


def given_ports(model):
    constants = {tensor.name for tensor in model.graph.initializer}
    return [port for port in model.graph.input if port.name not in constants]


def read_value(path, port):
    kind, text = port.type.WhichOneof("value"), path.read_bytes()
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(text))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(text))
    return numpy_helper.to_array(TensorProto.FromString(text))


def stored_sets(folder, model):
    """Of a test in files. Old ones have a file for each initializer that is an input, too."""
    given = given_ports(model)
    for one in sorted(folder.glob("test_data_set_*")):
        every = len(list(one.glob("input_*.pb"))) == len(model.graph.input)
        ports = list(model.graph.input) if every else given
        values = {port.name: read_value(one / f"input_{place}.pb", port) for place, port in enumerate(ports)}
        outputs = [read_value(one / f"output_{place}.pb", port) for place, port in enumerate(model.graph.output)]
        yield [values[port.name] for port in given], outputs


def title(node):
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}:{node.op_type}"


def collect(kinds, folder):
    """What there is, one dictionary a test."""
    from onnx.backend.test.loader import load_model_tests  # it computes all expected values

    found, single = [], {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for kind in kinds:
            for case in sorted(load_model_tests(kind=kind), key=lambda case: case.name):
                if case.model_dir:
                    model = onnx.load(Path(case.model_dir) / "model.onnx")
                    sets = list(stored_sets(Path(case.model_dir), model))
                else:
                    model = case.model
                    sets = [(arrays(inputs), arrays(outputs)) for inputs, outputs in case.data_sets]
                number = len(found)
                onnx.save(model, str(folder / f"{number}.onnx"))
                dtypes = set()
                for place, (inputs, outputs) in enumerate(sets):
                    parts = [*packed(inputs), *packed(outputs)]
                    for header in parts[::2]:
                        dtypes.update(re.findall(rb'"dtype": "(\w+)"', header.tobytes()))
                    np.savez(folder / f"{number}.{place}.npz", *parts)
                nodes = list(model.graph.node)
                operators = sorted({title(node) for node in nodes})
                if len(nodes) == 1:
                    single[case.name] = operators[0]
                found.append(
                    {
                        "name": case.name,
                        "kind": kind,
                        "operators": operators,
                        "opsets": {one.domain: one.version for one in model.opset_import},
                        "sets": len(sets),
                        "dtypes": sorted(name.decode() for name in dtypes),
                        "inputs": [port.name for port in given_ports(model)],
                        "outputs": [port.name for port in model.graph.output],
                    }
                )
    for one in found:
        whole = re.sub(r"_expanded(_ver\d+)?$", "", one["name"])
        only = one["operators"][0] if len(one["operators"]) == 1 else ""
        one["operator"] = single.get(whole) or only or "several"
    return found


def load(parameters):
    return lambda: [np.frombuffer(json.dumps(collect(KINDS, Path(FOLDER))).encode(), np.uint8)]
