"""Python source as HTML: comments, strings, keywords, names that are defined, numbers."""

from __future__ import annotations

import keyword
import re
from functools import lru_cache
from html import escape

_TOKEN = re.compile(
    r"(?P<s>[rbfRBF]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'))"
    r"|(?P<c>\#[^\n]*)"
    rf"|\b(?P<k>{'|'.join(keyword.kwlist)})\b"
    r"|(?<=def )(?P<d>\w+)|(?<=class )(?P<e>\w+)"
    r"|(?P<n>\b\d[\w.]*(?:e[+-]\d+)?)",
    re.DOTALL,
)
_CLASS = {"s": "s", "c": "c", "k": "k", "d": "d", "e": "d", "n": "n"}
PLAIN = 6000
"""In a longer text numbers are left as they are: most of it is data."""


@lru_cache(maxsize=256)
def highlighted(source: str) -> str:
    """HTML of Python source, safe to stand inside `<pre>`; texts that many pages share are kept."""
    pieces, end = [], 0
    for match in _TOKEN.finditer(source):
        kind = match.lastgroup or ""
        if kind == "n" and len(source) > PLAIN:
            continue
        pieces.append(escape(source[end : match.start()], quote=False))
        pieces.append(f'<i class="{_CLASS[kind]}">{escape(match[0], quote=False)}</i>')
        end = match.end()
    return "".join([*pieces, escape(source[end:], quote=False)])
