"""The program of an entry that has one of its own, as a person would send it: without what it says of its exit status,
and with an assertion where it ends with a status."""

from __future__ import annotations

import ast
import re

from harness.findings.upstream.tidy import readable

_OPPOSITE: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Eq: ast.NotEq(), ast.NotEq: ast.Eq(), ast.Lt: ast.GtE(), ast.GtE: ast.Lt(), ast.Gt: ast.LtE(),
    ast.LtE: ast.Gt(), ast.In: ast.NotIn(), ast.NotIn: ast.In(), ast.Is: ast.IsNot(), ast.IsNot: ast.Is(),
}  # fmt: skip
WIDEST = 120
"""Columns of a line."""
_SAID = re.compile(r"^reproduced:? ?")


def written(source: str) -> list[str]:
    """Texts of the program, that with an assertion first. Raises NoProgramError."""
    whole = readable(_without_scaffold(source))
    asserted = _asserted(whole)
    return [*([asserted] if asserted else []), whole]


def _without_scaffold(source: str) -> str:
    """Without the text in front, and what looks for packages."""
    tree = ast.parse(source)
    gone = [
        node
        for place, node in enumerate(tree.body)
        if (place == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.For) and "find_spec" in ast.unparse(node))
    ]
    return _tidied(_edited(source, [(node, "") for node in gone]))


def _asserted(source: str) -> str | None:
    """With an assertion in place of the end that tells by a status; None where it ends in another way."""
    body = ast.parse(source).body
    end = len(body)
    while end and _prints(body[end - 1], "not reproduced"):
        end -= 1
    if not end:
        return None
    dropped = body[end:]
    last = next((node for node in reversed(body[:end]) if not isinstance(node, ast.Assert)), body[0])
    before = body[: body.index(last)]
    edits: list[tuple[ast.stmt, str]] = [(node, "") for node in dropped]
    condition, said, shown = None, "", ""
    if isinstance(last, ast.If) and not last.orelse and len(last.body) == 2 and _ends(last.body[1]):
        condition, said = last.test, _words(last.body[0])
        edits.append((last, ""))
    elif _ends(last) and len(before) > 1 and _prints(before[-1], "reproduced") and (right := _accepted(before[-2])):
        condition, said = _not(right), _words(before[-1])
        edits += [(before[-2], ""), (before[-1], ""), (last, "")]
        before = before[:-2]
    elif _ends(last) and before and _prints(before[-1], "reproduced"):
        condition, told = _status(last), before[-1]
        said, shown = _of_either(told)
        edits += [(told, shown), (last, "")]
        before = before[:-1]
    elif isinstance(last, ast.Try) and len(last.handlers) == 1 and not last.orelse and _raises(last.handlers[0]):
        lines = [re.sub("^    ", "", line) for line in _lines(source, last.body[0], last.body[-1])]
        return _tidied(_edited(source, [*edits, (last, "\n".join(lines))]))
    if condition is None:
        return None
    condition = _plain(condition)
    named = next((node for node in reversed(before) if not _prints(node, "")), None)
    if isinstance(named, ast.Assign) and (name := ast.unparse(named.targets[0])) == ast.unparse(condition):
        condition, edits = (condition, edits) if name in said else (named.value, [*edits, (named, "")])
    assertion = _assertion(_not(condition), said)
    return _tidied(_edited(source, [(node, assertion if node is last else text) for node, text in edits]))


def _assertion(test: ast.expr, said: str) -> str:
    """In one line, or with a line for each condition."""
    told = f", {said}" if said else ""
    line = f"assert {ast.unparse(test)}{told}"
    if len(line) <= WIDEST or not isinstance(test, ast.BoolOp):
        return line
    word = "and" if isinstance(test.op, ast.And) else "or"
    parts = [f"({ast.unparse(one)})" if isinstance(one, ast.BoolOp) else ast.unparse(one) for one in test.values]
    return "\n".join(["assert (", f"    {parts[0]}", *(f"    {word} {part}" for part in parts[1:]), f"){told}"])


def _accepted(node: ast.stmt) -> ast.expr | None:
    """The condition on which it says "not reproduced", and ends."""
    if not isinstance(node, ast.If) or node.orelse or len(node.body) != 2:
        return None
    return node.test if _prints(node.body[0], "not reproduced") and _ends(node.body[1]) else None


def _plain(test: ast.expr) -> ast.expr:
    """Without what makes a truth value or a status of it."""
    if isinstance(test, ast.Call) and ast.unparse(test.func) in ("bool", "int") and len(test.args) == 1:
        return test.args[0]
    return test


def _not(test: ast.expr) -> ast.expr:
    """The opposite."""
    test = _plain(test)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return ast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]], test.comparators)
    if isinstance(test, ast.BoolOp):
        other = ast.And() if isinstance(test.op, ast.Or) else ast.Or()
        return ast.BoolOp(other, [_not(value) for value in test.values])
    return ast.UnaryOp(ast.Not(), test)


def _prints(node: ast.stmt, beginning: str) -> bool:
    """Does it print something of this beginning?"""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    text = ast.unparse(node)
    return text.startswith("print(") and bool(re.search(rf"""["']{beginning}""", text))


def _ends(node: ast.stmt) -> bool:
    return bool(re.match(r"(raise SystemExit|sys\.exit)\(", ast.unparse(node)))


def _status(node: ast.stmt) -> ast.expr | None:
    """What it ends with, where that is computed."""
    call = node.exc if isinstance(node, ast.Raise) else node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or len(call.args) != 1 or isinstance(call.args[0], ast.Constant):
        return None
    return call.args[0]


def _words(node: ast.stmt) -> str:
    """What it prints behind "reproduced:", as an expression."""
    if not _prints(node, "reproduced"):
        return ""
    assert isinstance(node, ast.Expr)
    assert isinstance(node.value, ast.Call)
    return _stripped(node.value.args[0]) if len(node.value.args) == 1 else ""


def _of_either(node: ast.stmt) -> tuple[str, str]:
    """Of what prints one of two: what is said where it shows, and a line that prints the rest."""
    assert isinstance(node, ast.Expr)
    assert isinstance(node.value, ast.Call)
    first, *rest = node.value.args
    shown = f"print({', '.join(map(ast.unparse, rest))})" if rest else ""
    if not isinstance(first, ast.IfExp):
        return "", shown
    either = [_stripped(part) for part in (first.body, first.orelse) if "not reproduced" not in ast.unparse(part)]
    return (either[0] if either else ""), shown


def _stripped(said: ast.expr) -> str:
    """A text without "reproduced:" in front; empty where nothing else is said."""
    for node in ast.walk(said):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _SAID.match(node.value):
            node.value = _SAID.sub("", node.value)
            break
    if isinstance(said, ast.JoinedStr):
        said = ast.JoinedStr([part for part in said.values if not (isinstance(part, ast.Constant) and not part.value)])
    text = ast.unparse(said)
    text = text.replace("'", '"') if text.count("'") == 2 and '"' not in text else text
    return "" if text in ('""', 'f""', '"wrong"') else text


def _raises(handler: ast.ExceptHandler) -> bool:
    """Does it only say what was raised, and end?"""
    return len(handler.body) == 2 and _prints(handler.body[0], "reproduced") and _ends(handler.body[1])


def _lines(source: str, first: ast.stmt, last: ast.stmt) -> list[str]:
    return source.splitlines()[first.lineno - 1 : last.end_lineno]


def _edited(source: str, edits: list[tuple[ast.stmt, str]]) -> str:
    """With texts in place of statements."""
    lines = source.splitlines()
    for node, text in sorted(edits, key=lambda edit: -edit[0].lineno):
        lines[node.lineno - 1 : node.end_lineno] = text.splitlines()
    return "\n".join(lines)


def _tidied(source: str) -> str:
    """Without modules that nothing names any more, and with no more than two empty lines in a row."""
    for module in ("sys", "importlib.util"):
        if not re.search(rf"\b{module}\.", source.replace(f"import {module}\n", "")):
            source = source.replace(f"import {module}\n", "")
    source = re.sub(r"\n{4,}", "\n\n\n", source)
    return re.sub(r"(?m)^(import .*|from .*)\n{3}(?!def |class |@)", r"\1\n\n", source).strip("\n") + "\n"
