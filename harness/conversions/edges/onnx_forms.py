"""From ONNX to ONNX: the same model in another form. Kernels, importers and optimisers have code for each: attributes
that are left out or given, operands that are constants or computed, older and newer opsets."""

from __future__ import annotations

from pathlib import Path

from harness.conversions.edges.edge import Edge

_HELPERS = Path(__file__).parents[1] / "helpers"
_BEHIND = {
    "equivalent": ("equals", "around"),
    "otherwise": ("equals", "around", "otherwise"),
    "differently": ("equals", "around", "differently"),
    "idle": ("equals", "idle"),
    "branched": ("equals", "around", "otherwise"),
    "constants_made": ("equals", "constants"),
    "shaped": ("shapes",),
    "opened": ("shapes",),
    "move": ("opsets",),
    "narrowed": ("equals", "constants", "opsets", "narrow"),
    "microsoft": ("equals", "around", "constants", "microsoft", "microsoft_attention"),
    **dict.fromkeys(("in_fields", "by_default", "sparsely", "by_functions"), ("stored",)),
}
"""Function -> the helpers that it needs behind that of the forms, `helpers/onnx_NAME.py`."""

OPSETS = (8, 9, 10, 11, 12, 13, 14, 17, 18, 21, 23, 24, 26)
"""As in the text."""

_CHANGES = {
    "onnx-terse": "terse(model)",
    "onnx-explicit": "explicit(model)",
    "onnx-computed": "computed(model)",
    "onnx-equivalent": "equivalent(model)",
    "onnx-otherwise": "otherwise(model)",
    "onnx-differently": "differently(model)",
    "onnx-otherwise-computed": "otherwise(model)\n    computed(model)",
    "onnx-differently-computed": "differently(model)\n    computed(model)",
    "onnx-branches": "branched(model)",
    "onnx-constants": "constants_made(model)",
    "onnx-shapes": "shaped(model)",
    "onnx-open": "opened(model)",
    "onnx-open-hyphens": 'opened(model, "size-of-{}")',
    "onnx-open-unnamed": 'opened(model, "")',
    "onnx-open-shapes": "shaped(model)\n    opened(model)",
    "onnx-narrow": "narrowed(model)",
    "onnx-microsoft": "microsoft(model)",
    "onnx-fields": "in_fields(model)",
    "onnx-defaults": "by_default(model)",
    "onnx-sparse": "sparsely(model)",
    "onnx-functions": "by_functions(model)",
    "onnx-idle": "idle(model)",
    **{f"onnx-opset-{opset}": f"move(model, {opset})" for opset in OPSETS},
}

_REFUSES = (
    (r"NotImplementedError: (.*no such form in opset [^\n]+)", "{}"),
    (r"('(?:Linear|Cubic)' mode) only supports", "ONNX Runtime says so of the axes that it resizes by {}"),
    (r"(min_ <= max_) was false", "ONNX Runtime's Clip up to opset 10 takes bounds of {} alone"),
)


def _convert(change: str) -> str:
    names = ("forms", *_BEHIND.get(change.partition("(")[0], ()))
    texts = ((_HELPERS / f"onnx_{name}.py").read_text(encoding="utf-8").rstrip("\n") for name in names)
    return (
        "\n\n\n".join(texts)
        + f"""


def convert(source, target):
    model = onnx.load(source)
    {change}
    onnx.save(model, target)
"""
    )


_PARTS = {f"onnx-{form}-computed": (f"onnx-{form}", "onnx-computed") for form in ("otherwise", "differently")} | {
    f"onnx-open-{names}": ("onnx-open",) for names in ("hyphens", "unnamed")
}

EDGES = tuple(
    Edge(
        name, "onnx", "onnx", ("onnx",), {"onnx": "1.17"}, _convert(change), refuses=_REFUSES, form=True,
        parts=_PARTS.get(name, ()),
    )
    for name, change in _CHANGES.items()
)  # fmt: skip
