"""Keras 3's archive (.keras): the configuration as JSON, weights as HDF5, vocabularies as assets.

Loading it imports modules and builds objects that the configuration names. Only classes and functions of Keras itself
that open no file and run no code of others are taken (allowed/keras.txt)."""

from __future__ import annotations

import builtins
import re
import zipfile
from pathlib import Path
from typing import Any

from harness.conversions.gate.reading.archives import LARGE, content, opened
from harness.conversions.gate.reading.hdf5 import weights
from harness.conversions.gate.reading.refused import LONGEST_TEXT, Refused, parsed, quoted, reason
from harness.conversions.gate.reading.words import listed, words

_MEMBER = re.compile(r"metadata\.json|config\.json|model\.weights\.h5|assets(/[\w.-]+)*/?", re.ASCII)
_OPERATIONS = re.compile(r"keras\.src\.ops\.(numpy|math|nn|image|linalg|core|einops|scatter)", re.ASCII)
"""Modules whose classes are operations; those of graphs and functions are not in configurations."""
_OF_FUNCTIONS = words("Cond ForiLoop Map Scan AssociativeScan WhileLoop VectorizedMap CustomGradient Switch PythonOp")
_OF_FUNCTIONS |= words("CallableOp Function Operation Fori While")
_CLASS = re.compile(r"[A-Z]\w*", re.ASCII)
_PRIVATE = re.compile(
    r"keras\.src\.(models\.(functional\.Functional|sequential\.Sequential)"
    r"|optimizers\.\w+\.\w+|backend\.\w+\.optimizers\.\w+\.\w+|losses\.losses\.\w+|metrics\.\w+\.\w+"
    r"|applications\.\w+\.(LayerScale|StochasticDepth|CustomScaleLayer)"
    r"|trainers\.compile_utils\.(CompileLoss|CompileMetrics|MetricsList))",
    re.ASCII,
)
_FUNCTIONS = words("keras.activations keras.losses keras.metrics keras.initializers keras.ops builtins")
_FUNCTION = re.compile(r"[a-z]\w*", re.ASCII)
_PLAIN = words("__keras_tensor__ __tensor__ __numpy__ __bytes__ __ellipsis__ __slice__")
_FILES = words("vocabulary idf_weights filepath file path directory weights url cache_dir")
"""Keys whose text is the path of a file."""
_NUMBERS = re.compile(r"(u?int|float|complex)\d+|bool|bfloat16|string", re.ASCII)
LONGEST = 100_000


def check(path: Path) -> str | None:
    """Why the file is refused unless it is trusted, in one line, or None."""
    return reason(_examine, path)


def _examine(path: Path) -> None:
    with opened(path, deflated=True) as archive:
        names = archive.namelist()
        for name in names:
            if not _MEMBER.fullmatch(name):
                raise Refused(f"it has a member that Keras does not write: {quoted(name)}")
        for needed in ("config.json", "model.weights.h5"):
            if needed not in names:
                raise Refused(f"it has no {needed}")
        told = parsed(content(archive, "config.json", LONGEST_TEXT), "config.json")
        if not isinstance(told, dict) or "class_name" not in told:
            raise Refused("config.json describes no model")
        configuration(told, "config")
        if "metadata.json" in names:
            parsed(content(archive, "metadata.json", LARGE), "metadata.json")
        _weights(archive)


def _weights(archive: zipfile.ZipFile) -> None:
    name = "model.weights.h5"
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED and info.file_size > LARGE:
        raise Refused(f"{name} has {info.file_size} bytes, compressed: more than {LARGE}")
    with archive.open(name) as file:
        weights(file, name)


def configuration(told: Any, spot: str) -> None:
    """A part of a configuration. Raises Refused."""
    if isinstance(told, list):
        for place, one in enumerate(told):
            configuration(one, f"{spot}[{place}]")
    elif isinstance(told, dict):
        if "class_name" in told:
            _object(told, spot)
        for key, one in told.items():
            here = f"{spot}.{ascii(key)[1:61]}"
            if key in _FILES and isinstance(one, str):
                raise Refused(f"{here} names a file: {quoted(one)}")
            if key.startswith("__") and key not in _PLAIN:
                raise Refused(f"{here} is not known")
            configuration(one, here)
    elif isinstance(told, str) and len(told) > LONGEST:
        raise Refused(f"{spot} is a text of {len(told)} characters")
    elif isinstance(told, int) and abs(told) > 2**64:
        raise Refused(f"{spot} is a number of {told.bit_length()} bits")


def _object(told: dict[str, Any], spot: str) -> None:
    kind, module, registered = told["class_name"], told.get("module"), told.get("registered_name")
    if not isinstance(kind, str):
        raise Refused(f"{spot}.class_name is {quoted(kind)}")
    if kind in _PLAIN:
        dtype = told["config"].get("dtype") if isinstance(told.get("config"), dict) else None
        if kind in ("__tensor__", "__numpy__") and not (isinstance(dtype, str) and _NUMBERS.fullmatch(dtype)):
            raise Refused(f"{spot} has values of the type {quoted(dtype)}")
        return
    if not isinstance(module, str):
        raise Refused(f"{spot} names {quoted(kind)} of no module")
    if kind == "function":
        name = told.get("config")
        known = module in _FUNCTIONS and isinstance(name, str) and bool(_FUNCTION.fullmatch(name))
        if module == "builtins":  # so Keras writes functions of its own, by their name alone
            known = known and not hasattr(builtins, str(name))
        if module == "keras.ops":
            known = known and f"keras.ops.{name}" in listed("keras.txt")
        if not known:
            raise Refused(f"{spot} names the function {quoted(f'{module}.{name}')}")
        return
    if registered not in (None, kind):
        raise Refused(f"{spot} is registered as {quoted(registered)}, not by Keras")
    whole = f"{module}.{kind}"
    operation = bool(_OPERATIONS.fullmatch(module)) and bool(_CLASS.fullmatch(kind)) and kind not in _OF_FUNCTIONS
    if whole not in listed("keras.txt") and not operation and not _PRIVATE.fullmatch(whole):
        raise Refused(f"{spot} names {quoted(whole)}, which is not of the list of Keras")
