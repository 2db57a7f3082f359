"""Features and labels in other forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracles.onnx.operators.arguments import refuse
from oracles.onnx.rule import Call, Value

_KINDS = ("strings", "int64s", "floats", "tensor")
_UNKNOWN = {"strings": "_Unused", "int64s": -1, "floats": -0.0}


def _listed(call: Call, prefix: str) -> tuple[str, list[Any]]:
    """The one list of keys or values that is stated, and its kind."""
    for kind in _KINDS:
        given = call.get(f"{prefix}_{kind}", None)
        if given is not None and len(given):
            return kind, np.asarray(given).ravel().tolist() if kind == "tensor" else list(given)
    raise refuse(call, f"no {prefix}")


def _typed(items: list[Any], shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    made = np.empty(len(items), dtype)
    made[:] = items
    return made.reshape(shape)


def _mapped(x: np.ndarray, table: dict[Any, Any], unknown: Any, dtype: Any) -> np.ndarray:
    found = [table.get("NaN" if item != item else item, unknown) for item in x.ravel().tolist()]
    return _typed(found, x.shape, dtype)


def _label_encoder(call: Call) -> list[Value]:
    """By a list of classes in version 1, by keys and values later, the last one of equal keys; NaN is a key."""
    x = call.input(0)
    if call.version == 1:
        classes = call.get("classes_strings", ())
        if x.dtype == object:
            table = {name: place for place, name in reversed(list(enumerate(classes)))}
            return [_mapped(x, table, call.get("default_int64", -1), np.int64)]
        return [_mapped(x, dict(enumerate(classes)), call.get("default_string", "_Unused"), object)]
    _, keys = _listed(call, "keys")
    kind, values = _listed(call, "values")
    if kind == "tensor":
        array = np.asarray(call.get("values_tensor", ()))
        dtype: Any = array.dtype
        default = call.get("default_tensor", None)
        unknown = "_Unused" if dtype.hasobject else -1 if dtype.kind in "iu" else -0.0
        unknown = unknown if default is None else np.asarray(default).ravel().tolist()[0]
    else:
        dtype = {"strings": object, "int64s": np.int64, "floats": np.float64}[kind]
        unknown = call.get(f"default_{kind[:-1]}", _UNKNOWN[kind])
    if call.version < 4 and len({"NaN" if key != key else key for key in keys}) < len(keys):
        raise refuse(call, "a key that stands twice")
    table = {("NaN" if key != key else key): value for key, value in zip(keys, values, strict=True)}
    return [_mapped(x, table, unknown, dtype)]


def _category_mapper(call: Call) -> list[Value]:
    x, texts, numbers = call.input(0), call.get("cats_strings", ()), call.get("cats_int64s", ())
    if x.dtype == object:
        return [_mapped(x, dict(zip(texts, numbers, strict=True)), call.get("default_int64", -1), np.int64)]
    return [_mapped(x, dict(zip(numbers, texts, strict=True)), call.get("default_string", "_Unused"), object)]


def _one_hot(call: Call) -> list[Value]:
    x = call.input(0)
    categories = call.get("cats_strings", None) or call.get("cats_int64s", ())
    keys = x if x.dtype == object else np.trunc(x).astype(np.int64)
    places = _mapped(keys, {name: place for place, name in enumerate(categories)}, -1, np.int64)
    if not call.get("zeros", 1) and (places < 0).any():
        raise ValueError("a category that is not listed")
    return [(places[..., None] == np.arange(len(categories))).astype(np.float64)]


def _binarizer(call: Call) -> list[Value]:
    x = call.input(0)
    return [(x > call.get("threshold", 0.0)).astype(x.dtype)]


def _imputer(call: Call) -> list[Value]:
    """Replaces one value, of floats also NaN, by one for all or by one for each feature."""
    x = call.input(0)
    kind, name = ("floats", "float") if x.dtype == np.float64 else ("int64s", "int64")
    new, old = np.array(call.get(f"imputed_value_{kind}", ()), x.dtype), call.get(f"replaced_value_{name}", 0)
    if new.size not in (1, x.shape[-1]):
        raise refuse(call, f"{new.size} values for {x.shape[-1]} features")
    return [np.where(np.isnan(x) if old != old else x == old, new, x)]


def _extractor(call: Call) -> list[Value]:
    """Elements of the last axis; of a vector, as one row."""
    x, places = call.input(0), call.input(1).ravel()
    taken = np.take(x, places, -1)
    return [taken[None] if x.ndim == 1 else taken]


def _feature_vectorizer(call: Call) -> list[Value]:
    parts = [(x.reshape(1, -1) if x.ndim == 1 else x).astype(np.float64) for x in call.inputs]  # type: ignore[union-attr]
    sizes = call.get("inputdimensions", [part.shape[1] for part in parts])
    if [part.shape[1] for part in parts] != list(sizes):
        raise refuse(call, f"inputdimensions {sizes} of other inputs")
    return [np.concatenate(parts, 1)]


def _dict_vectorizer(call: Call) -> list[Value]:
    """Values at the places of their keys, zero elsewhere."""
    given = call.input(0)
    words = call.get("string_vocabulary", None) or call.get("int64_vocabulary", ())
    missing = set(given) - set(words)
    if missing:
        raise ValueError(f"keys that are not in the vocabulary: {missing}")
    values = [given.get(word) for word in words]
    texts = any(isinstance(item, str) for item in values)
    numbers = [("" if texts else 0) if item is None else item for item in values]
    return [_typed(numbers, (len(words),), object) if texts else np.array(numbers)]


def _zip_map(call: Call) -> list[Value]:
    """One map a row."""
    x = call.input(0)
    keys = call.get("classlabels_strings", None) or call.get("classlabels_int64s", ())
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    return [[dict(zip(keys, row, strict=True)) for row in rows.tolist()]]


def _cast_map(call: Call) -> list[Value]:
    raise refuse(call, "the text does not say of what shape the tensor is")


RULES = {
    "ai.onnx.ml:ArrayFeatureExtractor": _extractor,
    "ai.onnx.ml:Binarizer": _binarizer,
    "ai.onnx.ml:CastMap": _cast_map,
    "ai.onnx.ml:CategoryMapper": _category_mapper,
    "ai.onnx.ml:DictVectorizer": _dict_vectorizer,
    "ai.onnx.ml:FeatureVectorizer": _feature_vectorizer,
    "ai.onnx.ml:Imputer": _imputer,
    "ai.onnx.ml:LabelEncoder": _label_encoder,
    "ai.onnx.ml:OneHotEncoder": _one_hot,
    "ai.onnx.ml:ZipMap": _zip_map,
}
