"""Strings, and tokens in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise, product

import numpy as np

from oracles.onnx.operators.arguments import refuse
from oracles.onnx.rule import Call, Value


def _texts(items: list[str], shape: tuple[int, ...]) -> np.ndarray:
    made = np.empty(len(items), object)
    made[:] = items
    return made.reshape(shape)


def _concatenate(call: Call) -> list[Value]:
    left, right = np.broadcast_arrays(call.input(0), call.input(1))
    return [_texts([a + b for a, b in zip(left.ravel(), right.ravel(), strict=True)], left.shape)]


def _split(call: Call) -> list[Value]:
    """Parts, filled with empty strings to the greatest number of them, and their numbers; without a delimiter, white
    space separates."""
    x, limit = call.input(0), call.get("maxsplit", -1)
    delimiter = call.get("delimiter", "") or None
    found = [item.split(delimiter, limit) for item in x.ravel()]
    most = max(map(len, found), default=0)
    filled = [part for parts in found for part in (*parts, *[""] * (most - len(parts)))]
    counts = np.array([len(parts) for parts in found], np.int64).reshape(x.shape)
    return [_texts(filled, (*x.shape, most)), counts]


def _normalize(call: Call) -> list[Value]:
    """Without stop words, then in one case; an empty string where nothing is left."""
    x, action = call.input(0), call.get("case_change_action", "NONE")
    cases: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
    if action not in cases or (x.ndim == 2 and x.shape[0] != 1) or x.ndim > 2:
        raise refuse(call, f"case_change_action {action!r}, an input of {x.shape}")
    same = str if call.get("is_case_sensitive", 0) else str.lower
    words = {same(word) for word in call.get("stopwords", ())}
    kept = [cases[action](item) for item in x.ravel() if same(item) not in words] or [""]
    return [_texts(kept, (1, len(kept)) if x.ndim == 2 else (len(kept),))]


def _full_match(call: Call) -> list[Value]:
    """By Python's expressions, where they mean the same as RE2's: no looking around, no references back, no
    possessive or atomic groups, and ASCII classes, which RE2 has."""
    pattern, x = call.get("pattern", ""), call.input(0)
    if re.search(r"\(\?(?!:|P<)|\\[1-9pPCQEzAZ]|\(\?P[=>]|[*+?}]\+|\[\[:", pattern):
        raise refuse(call, f"the pattern {pattern!r}, which RE2 and Python may read differently")
    if "$" in pattern and any("\n" in item for item in x.ravel()):
        raise refuse(call, "an end of text before a last line's end, where RE2 has none")
    try:
        compiled = re.compile(pattern, re.ASCII)
    except re.error as error:
        raise refuse(call, f"the pattern {pattern!r}: {error}") from None
    found = [compiled.fullmatch(item) is not None for item in x.ravel()]
    return [np.array(found, bool).reshape(x.shape)]


def _ngrams(call: Call) -> dict[tuple, int]:
    """Each n-gram of the pool, with its number."""
    pool = call.get("pool_strings", None)
    pool = call.get("pool_int64s", None) if pool is None else pool
    starts = [*call.get("ngram_counts", ()), len(pool)]
    found: dict[tuple, int] = {}
    for size, (start, end) in enumerate(pairwise(starts), 1):
        for place in range(start, end, size):
            found[tuple(pool[place : place + size])] = len(found)
    return found


def _tfidf(call: Call) -> list[Value]:
    """How often each n-gram stands in a row, at distances up to max_skip_count + 1."""
    x, mode = call.input(0), call.get("mode", "")
    coordinates = call.get("ngram_indexes", ())
    weights = np.array(call.get("weights", None) or [1.0] * len(coordinates))
    known = _ngrams(call)
    if mode not in ("TF", "IDF", "TFIDF") or len(known) != len(coordinates):
        raise refuse(call, f"mode {mode!r}, {len(known)} n-grams for {len(coordinates)} coordinates")
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    result = np.zeros((len(rows), max(coordinates, default=-1) + 1))
    lengths = range(call.get("min_gram_length", 1), call.get("max_gram_length", 1) + 1)
    for row, (size, skip) in product(range(len(rows)), product(lengths, range(call.get("max_skip_count", 0) + 1))):
        if size == 1 and skip:
            continue  # one token has no distances
        step = skip + 1
        tokens = rows[row].tolist()
        for start in range(len(tokens) - (size - 1) * step):
            number = known.get(tuple(tokens[start : start + size * step : step]))
            if number is not None:
                result[row, coordinates[number]] += 1
    by_coordinate = np.ones(result.shape[1])
    by_coordinate[list(coordinates)] = weights
    if mode == "IDF":
        result = (result > 0) * by_coordinate
    elif mode == "TFIDF":
        result = result * by_coordinate
    return [result[0] if x.ndim < 2 else result]


RULES = {
    "RegexFullMatch": _full_match,
    "StringConcat": _concatenate,
    "StringNormalizer": _normalize,
    "StringSplit": _split,
    "TfIdfVectorizer": _tfidf,
}
