"""Lines of a program as a person leaves them: imports that are used, empty lines between the parts."""

from __future__ import annotations

import ast
import re

from harness.findings.upstream.literals import NoProgramError

LONGEST, MOST = 30, 80
"""Lines, without empty ones: of a short program, and of one that a maintainer is given where there is no short one."""


def counted(text: str) -> int:
    """Lines that are not empty."""
    return sum(bool(line.strip()) for line in text.splitlines())


def readable(text: str) -> str:
    """The same. Raises NoProgramError where nobody would read it."""
    if counted(text) > MOST:
        raise NoProgramError(f"its program has {counted(text)} lines")
    return text


def bare(source: str) -> list[str]:
    """Functions without docstrings and comments, as lines."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) and len(node.body) > 1:
            node.body = node.body[1:]
    return ast.unparse(tree).splitlines()


def tidy(lines: list[str]) -> str:
    """The imports that are used, what has to stand before, and empty lines between the parts."""
    body = "\n".join(lines)
    early = [line.split("  #")[0] for line in lines if line.startswith("os.environ")]  # read by what is imported
    used = [line for line in lines if line.startswith(("import ", "from ")) and not (early and line == "import os")]
    rest = [line for line in lines if line not in used and not (early and line.startswith(("import os", "os.environ")))]
    text = "\n".join(rest)
    if re.search(r"\b(nan|inf)\b", re.sub(r"np\.(nan|inf)", "", text)):
        used.insert(0, "from math import inf, nan")
    if re.search(r"(?<![\w.])math\.", text):
        used.insert(0, "import math")
    kept = [shorter for line in dict.fromkeys(used) if (shorter := _used(line, text))]
    if "x64" in body and not re.search(r"64\b", re.sub(r"jax_enable_x64", "", text)):
        rest = [line for line in rest if "jax_enable_x64" not in line]
    rest = [line for line in rest if line.strip()]
    rest = _spaced(rest)
    first = ["import os", "", *early, ""] if early else []
    kept.sort(key=lambda line: (line.startswith("from "), line))
    return "\n".join([*first, *kept, "", *rest]) + "\n"


def _used(line: str, text: str) -> str:
    """An import of those names alone that the text has; empty where it has none."""
    statement = ast.parse(line).body[0]
    assert isinstance(statement, ast.Import | ast.ImportFrom)
    bound = [(alias, alias.asname or alias.name.split(".")[0]) for alias in statement.names]
    statement.names = [alias for alias, name in bound if re.search(rf"(?<![\w.]){name}\b", text)]
    return ast.unparse(statement) if statement.names else ""


def _spaced(lines: list[str]) -> list[str]:
    """Empty lines around functions."""
    found: list[str] = []
    inside = False
    for line in lines:
        begins = line.startswith(("def ", "class ", "@"))
        ends = inside and not line.startswith((" ", "def ", "class ", "@"))
        if (begins and found and not found[-1].startswith("@")) or ends:
            found.append("")
        inside = begins or (inside and not ends)
        found.append(line)
    return found
