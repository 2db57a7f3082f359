"""TVM's importers, and its levels O0 to O3 on files of the formats that these take: imported and compiled in one
process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.backends.target.text import before, swapped
from harness.backends.tvm.levels import BEFORE, loads
from harness.conversions.formats.format import Runner
from harness.conversions.formats.pt2 import LOAD, UNTRACED
from harness.conversions.formats.tflite import SIGNED

_COMPILE = """
def convert(source, target):
    import json
    from pathlib import Path

    import tvm
    from tvm import relax

    names = []  # of the outputs, where the file has them in another order than its signature
{imported}
    function = module["main"]

    def ports(kind, values):
        return [
            (
                name or f"{{kind}}{{i}}",
                str(type_.dtype),
                [int(dim) if isinstance(dim, tvm.tirx.IntImm) else None for dim in type_.shape or [None] * type_.ndim],
            )
            for i, (name, type_) in enumerate(values)
        ]

    returned = function.ret_ty
    results = list(returned.fields) if hasattr(returned, "fields") else [returned]
    signature = {{
        "inputs": ports("in", [(variable.name, variable.ty) for variable in function.params]),
        "outputs": ports("out", [*zip(names or [""] * len(results), results)]),
    }}
    tvm.compile(module, tvm.target.Target("llvm")).export_library(target)
    Path(target).with_suffix(".json").write_text(json.dumps(signature), encoding="utf-8")
"""

_ONNX = """
    import onnx
    from tvm.relax.frontend.onnx import from_onnx

    module = from_onnx(onnx.load(source), keep_params_in_input=False)
"""

_ONNX_PARAMETERS = """
    import onnx
    from tvm.relax.frontend import detach_params
    from tvm.relax.frontend.onnx import from_onnx

    module, kept = detach_params(from_onnx(onnx.load(source), keep_params_in_input=True))
    values = kept.get("main", [])
    variables = module["main"].params[len(module["main"].params) - len(values) :]
    module = relax.transform.BindParams("main", dict(zip([one.name for one in variables], values)))(module)
"""
"""Constants are parameters of the function, and become constants again once all is imported."""

_TORCH = """
    from tvm.relax.frontend.torch import from_exported_program

    module = from_exported_program(exported_program(source), run_ep_decomposition=True)
"""

_WHOLE = _TORCH.replace("run_ep_decomposition=True", "run_ep_decomposition=False")

_TFLITE = """
    import tflite
    from tvm.relax.frontend.tflite import from_tflite

    names = [name for _, name in signed(source)]
    module = from_tflite(tflite.Model.GetRootAsModel(Path(source).read_bytes(), 0))
"""

_PACKAGES = {"apache-tvm": "0.25"}
_SAYS = (
    (r"(\w+) axis input must be a Constant or Var", "no {} along an axis that is computed"),
    (r"Dynamic Split not yet supported", "no split into parts whose sizes are computed"),
    (r"Unsupported function types (\[.*?\])", "no {}"),
    (r"Tensor type (\d+) is currently not supported", "no tensors of TFLite's type {}"),
    ("TFLite does not support multi-axis yet", "several axes of a reversal"),
    (r"operators are not supported for frontend ONNX: (\w+)", "no {}"),
    (r"(\w+): only support float32 and float16 for now", "no {} of other dtypes than float32 and float16"),
    (r"ValueError: unknown dtype `object`", "no tensors of text"),
    (r"ValueError: unknown dtype `(complex\d+)`", "no tensors of {}"),
    (r"Only constant (\w+) currently supported", "{} that are computed"),
    (r"Only constant (\w+) supported for (\w+)", "{1} at a {0} that is computed"),
    (r"GroupNormalization currently only supports stash_type=1", "no normalisation of groups but in float32"),
    (r"(\w+) import currently only supports required ([^\n]+)", "no {} without {}"),
    (r"(\w+) blocked quantization is not supported yet", "no {} by blocks"),
    (r"TopK sorted must be 1", "no TopK whose results are in any order"),
    (r"(\w+ \w+) must be a constant", "{} that is computed"),
    (r"Type <class 'tvm.ir.expr.Call'> for (\w+) is currently unsupported", "a {} that is computed"),
    (r"The TFLite to Relax converter does not support ([\w ]+) operator yet", "no {}"),
    (r"OpNotImplemented: (\w+) subgraph (?:input|output) tensor metadata mismatch", "no {} whose part has open sizes"),
    (r"relax\.nn\.(\w+)\".* must be float, but got T\.(bfloat16)", "no {} of {}"),
    (r"Data type T\.(\w+) not supported for (\w+) op", "no {1} of {0}"),
    (r"(\w+) requires the input tensor to have float dtype\. .* is T\.(bfloat16)", "no {} of {}"),
    (r"input_type (torch\.complex\d+) is not handled yet", "no {}"),
    (r"Unsupported input kind: InputKind\.(\w+)", "no inputs of kind {}"),
    (r"Only a float mask is supported", "no masks of truth values"),
    (r"Unsupported transposed convolution dimensionality: 5", "no transposed convolutions of volumes"),
    (r"scaled_dot_product_attention expects 2D or 4D inputs", "no attention of three dimensions"),
    (r"NotImplementedError: (.*) is not yet supported in TVM", "no {}"),
    (r"(var/std) with non-zero correction requires statically known", "no {} of an open size but with no correction"),
)
_TYPES = (r"^KeyError: (\d+)\b", "no inputs of TFLite's type {}")
"""The importer has a table of the dtypes of inputs (`_decode_type`), without float64, for one, which is 10."""


@dataclass(frozen=True)
class Importer:
    """One of TVM's importers. name: of its edge; format: of the files that it takes; modules, packages: what it needs;
    convert: the text of `convert(source, target)`, which compiles what it imports; refuses: what it documents not to
    do, by message."""

    name: str
    format: str
    modules: tuple[str, ...]
    packages: Mapping[str, str]
    convert: str
    refuses: tuple[tuple[str, str], ...]

    @property
    def on_request(self) -> bool:
        """Another way of the same importer."""
        return self.name != f"tvm-{self.format}"


IMPORTERS = tuple(
    Importer(
        name,
        format_,
        ("tvm", "tvm.relax", module),
        {**_PACKAGES, **more},
        helpers + _COMPILE.format(imported=text.strip("\n")),
        refuses,
    )
    for name, format_, module, more, helpers, text, refuses in (
        ("tvm-onnx", "onnx", "onnx", {"onnx": "1.17"}, "", _ONNX, _SAYS),
        ("tvm-onnx-parameters", "onnx", "onnx", {"onnx": "1.17"}, "", _ONNX_PARAMETERS, _SAYS),
        ("tvm-pt2", "pt2", "torch", {"torch": "2.9"}, LOAD + "\n", _TORCH, (*_SAYS, *UNTRACED)),
        ("tvm-pt2-whole", "pt2", "torch", {"torch": "2.9"}, LOAD + "\n", _WHOLE, (*_SAYS, *UNTRACED)),
        ("tvm-tflite", "tflite", "tflite", {"tflite": "2.18"}, SIGNED + "\n", _TFLITE, (*_SAYS, _TYPES)),
    )
)


_CALL = """
    def call(*arrays):
        returned = machine["main"](*[tvm.runtime.tensor(array) for array in arrays])
        return [value.numpy() for value in ([returned] if hasattr(returned, "numpy") else returned)]

    return *[[tuple(port) for port in signature[side]] for side in ("inputs", "outputs")], call
"""


def _open(convert: str, level: int) -> str:
    """The importer of a conversion, followed by the pipeline of a level of the target that runs drawn graphs."""
    imported = swapped(before(convert, "    tvm.compile("), ("def convert(source, target):", "def open_model(source):"))
    pipeline = before(loads(level, BEFORE[level])[0], "\n    def run(").partition("    target = ")
    compiled = swapped(
        "".join(pipeline[1:]),
        ('relax.transform.BindParams("main", parameters),\n        ', ""),
        ("tvm.compile(bb.get(), ", "tvm.compile(module, "),
    )
    return imported + compiled + _CALL


RUNNERS = tuple(
    Runner(
        f"tvm-O{level}-{importer.format}",
        importer.format,
        "tvm-importer",
        importer.modules,
        importer.packages,
        _open(importer.convert, level),
        inherits=(f"tvm-O{level}",),
        refuses=importer.refuses,
        level=level,
        slow=True,
        owner="TVM",
    )
    for importer in IMPORTERS
    if not importer.on_request
    for level in BEFORE
)
