"""OpenVINO's intermediate representation: an XML file and its weights beside it (.bin)."""

from __future__ import annotations

from pathlib import Path

from harness.conversions.formats.format import Format, Runner

_OPEN = """
def open_model(path):
    import openvino

    core = openvino.Core()
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = core.compile_model(core.read_model(path), "CPU", options)

    def named(value, place):
        # a tensor has the names of all that is folded into it, an input its own one among them
        own = value.get_node().get_friendly_name()
        return own if own in value.get_names() else value.get_any_name() if value.get_names() else place

    def element(value):
        # to_dtype says float16 of bfloat16, and so do the arrays of its tensors
        of = value.get_element_type()
        if of == openvino.Type.bf16:
            import ml_dtypes  # numpy knows bfloat16 by it

            return "bfloat16"
        return of.to_dtype().name

    def ports(values):
        return [
            (
                named(value, f"{kind}{i}"),
                element(value),
                [None if dim.is_dynamic else dim.get_length() for dim in value.get_partial_shape()],
            )
            for kind, ports in values.items()
            for i, value in enumerate(ports)
        ]

    def tensor(array):
        return openvino.Tensor(np.ascontiguousarray(array).view(np.uint16), array.shape, openvino.Type.bf16)

    inputs, outputs = ports({"in": compiled.inputs}), ports({"out": compiled.outputs})

    def call(*arrays):
        given = {i: array if array.dtype.name != "bfloat16" else tensor(array) for i, array in enumerate(arrays)}
        returned = compiled(given, share_inputs=False, share_outputs=False)
        found = [np.array(returned[i]) for i in range(len(outputs))]
        return [y.view("bfloat16") if out[1] == "bfloat16" else y for y, out in zip(found, outputs)]

    return inputs, outputs, call
"""


def check(path: Path) -> str | None:
    """XML of a network, with the file of its weights beside it."""
    beginning = path.read_bytes()[:400]
    if b"<net " not in beginning:
        return "it holds no <net>"
    return None if path.with_suffix(".bin").is_file() else f"{path.with_suffix('.bin').name} is not beside it"


FORMATS = (Format("openvino", ".xml", (".xml",), check),)

NARROWS = {"float64": "float32", **dict.fromkeys(("int64", "uint64", "uint32"), "int32")}
"""What its CPU plugin computes in a narrower dtype (OpenVINO's documentation, "CPU Device")."""

RUNNERS = (
    Runner(
        "openvino",
        "openvino",
        "openvino",
        ("openvino",),
        {"openvino": "2025.0"},
        _OPEN,
        narrows=NARROWS,
        refuses=(
            (
                r"doesn't support (?!Parameter)(\w+) operation with dynamic rank",
                "no {} to a rank that is known at run time only",
            ),
            (r"Interpolate node .* (only supports resize on spatial dimensions)", "the CPU plugin {}"),
        ),
        inherits=("openvino",),
        owner="OpenVINO",
    ),
)
