"""Archives of Keras with classes, functions, files or links that are not of Keras."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from hostile.edit import Build, joined


def _weights(change: Callable[[Any, Path], None] | None = None, marker: Path = Path("/nowhere")) -> bytes:
    import h5py
    import numpy as np

    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file["layers/dense/vars/0"] = np.ones((4, 3), "float32")
        if change:
            change(file, marker)
    return stream.getvalue()


@cache
def good() -> dict[str, bytes]:
    dense = {"module": "keras.layers", "class_name": "Dense", "registered_name": None, "config": {"units": 3}}
    config = {"name": "sequential", "layers": [dense]}
    told = {"module": "keras", "class_name": "Sequential", "config": config, "registered_name": None}
    return {
        "metadata.json": b'{"keras_version": "3.15.1"}',
        "config.json": json.dumps(told).encode(),
        "model.weights.h5": _weights(),
    }


def _layer(layer: dict[str, Any], folder: Path, marker: Path) -> Path:
    told = json.loads(good()["config.json"])
    told["config"]["layers"][0] = layer
    return joined(folder / "model.keras", dict(good()) | {"config.json": json.dumps(told).encode()})


def _of(name: str, module: str = "keras.layers", **config: Any) -> Build:
    return partial(_layer, {"module": module, "class_name": name, "config": config, "registered_name": None})


def _stored(change: Callable[[Any, Path], None], folder: Path, marker: Path) -> Path:
    return joined(folder / "model.keras", dict(good()) | {"model.weights.h5": _weights(change, marker)})


def _linked(kind: str, file: Any, marker: Path) -> None:
    import h5py

    links = {"external": h5py.ExternalLink(str(marker), "/x"), "soft": h5py.SoftLink("/layers")}
    file["link"] = links[kind]


def _outside(file: Any, marker: Path) -> None:
    file.create_dataset("outside", (8,), "u1", external=[(str(marker.with_name("secret.txt")), 0, 8)])


def _virtual(file: Any, marker: Path) -> None:
    import h5py

    layout = h5py.VirtualLayout((8,), "u1")
    layout[:] = h5py.VirtualSource(str(marker), "x", (8,))
    file.create_virtual_dataset("virtual", layout)


def _texts(file: Any, marker: Path) -> None:
    file["texts"] = ["a", "b"]


def _huge(file: Any, marker: Path) -> None:
    file.create_dataset("huge", (1 << 40,), "u1", chunks=(1 << 20,), compression="gzip")


def _member(name: str, folder: Path, marker: Path) -> Path:
    return joined(folder / "model.keras", dict(good()) | {name: b"x"})


def _bomb(folder: Path, marker: Path) -> Path:
    members = dict(good()) | {"model.weights.h5": bytes(300 << 20)}
    return joined(folder / "model.keras", members, zipfile.ZIP_DEFLATED)


def _cycle(file: Any, marker: Path) -> None:
    file["layers/again"] = file["layers"]


def _references(file: Any, marker: Path) -> None:
    import h5py

    file.create_dataset("references", data=[file["layers"].ref], dtype=h5py.ref_dtype)


def _named_type(file: Any, marker: Path) -> None:
    import numpy as np

    file["type"] = np.dtype("f4")


def _compiled(**config: Any) -> Build:
    def build(folder: Path, marker: Path) -> Path:
        told = json.loads(good()["config.json"]) | {"compile_config": config}
        return joined(folder / "model.keras", dict(good()) | {"config.json": json.dumps(told).encode()})

    return build


_CODE = {"class_name": "__lambda__", "config": {"value": "4wE="}}
HOSTILE: dict[str, Build] = {
    **{name: _of(name) for name in ("Lambda", "TFSMLayer", "TorchModuleWrapper", "JaxLayer", "FlaxLayer")},
    "lambda_inside": _of("Dense", activation=_CODE),
    "os": _of("system", "os"),
    "other_package": _of("Layer", "keras_hub.layers"),
    "get_file": _of("Dense", activation={"module": "keras.utils", "class_name": "function", "config": "get_file"}),
    "any_function": _of("Dense", activation={"module": "os", "class_name": "function", "config": "system"}),
    "no_module": partial(_layer, {"class_name": "Lambda", "config": {}}),
    "registered": partial(
        _layer, {"module": "keras.layers", "class_name": "Dense", "config": {}, "registered_name": "my>Dense"}
    ),
    "vocabulary": _of("StringLookup", vocabulary="/etc/passwd"),
    "type": partial(_layer, {"class_name": "__typespec__", "config": [], "module": "tensorflow"}),
    "objects": _of("Rescaling", scale={"class_name": "__numpy__", "config": {"value": [1], "dtype": "object"}}),
    "external_link": partial(_stored, partial(_linked, "external")),
    "soft_link": partial(_stored, partial(_linked, "soft")),
    "external_data": partial(_stored, _outside),
    "virtual": partial(_stored, _virtual),
    "texts": partial(_stored, _texts),
    "huge": partial(_stored, _huge),
    "outside": partial(_member, "../outside.txt"),
    "pickle": partial(_member, "model.pkl"),
    "bomb": _bomb,
    "cycle": partial(_stored, _cycle),
    "references": partial(_stored, _references),
    "named_type": partial(_stored, _named_type),
    "compiled_loss": _compiled(loss={"module": "os", "class_name": "function", "config": "system"}),
    "compiled_class": _compiled(optimizer={"module": "subprocess", "class_name": "Popen", "config": {"args": "true"}}),
    "built_in": _of("Dense", activation={"module": "builtins", "class_name": "function", "config": "eval"}),
    "private": _of("Sequential", "keras.src.saving.saving_lib"),
    "graph": _of("Functional", "keras.src.legacy.saving.legacy_h5_format"),
    "numpy_weights": partial(_member, "model.weights.npz"),
}
HARMLESS: dict[str, Build] = {"good": lambda folder, marker: joined(folder / "model.keras", good())}
