"""Python source as HTML: comments, strings, keywords, names that are defined, numbers."""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape
from keyword import iskeyword

_TOKEN = re.compile(
    r"(?P<s>[rbfRBF]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'))"
    r"|(?P<c>\#[^\n]*)"
    r"|(?P<w>[^\W\d]\w*)"
    r"|(?P<n>\d[\w.]*(?:e[+-]\d+)?)",
    re.DOTALL,
)
PLAIN = 6000
"""In a longer text numbers are left as they are: most of it is data."""


@lru_cache(maxsize=256)
def highlighted(source: str) -> str:
    """HTML of Python source, safe to stand inside `<pre>`; texts that many pages share are kept."""
    pieces, end, before = [], 0, ""
    for match in _TOKEN.finditer(source):
        kind = match.lastgroup or ""
        if kind == "w":
            word, defined = match[0], before in ("def", "class")
            kind, before = "k" if iskeyword(word) else "d" if defined else "", word
        if not kind or (kind == "n" and len(source) > PLAIN):
            continue
        pieces.append(escape(source[end : match.start()], quote=False))
        pieces.append(f'<i class="{kind}">{escape(match[0], quote=False)}</i>')
        end = match.end()
    return "".join([*pieces, escape(source[end:], quote=False)])
