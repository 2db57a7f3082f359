"""Which members of a program that failed are named by what was said of it, so that it need not be taken apart by
halves. It is a guess: whoever is named is run alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import log

from generators.union import mentions
from harness.execute.processes.worker import errors_of
from oracles.judge.outcome import Crash, Outcome, Rejected, Unsupported

MOST = 4
"""Of so many members one may be named; where it is more, halves are fewer programs."""
LEAST = 4
"""Letters of a word that tells something."""
_QUOTED = re.compile(r"""['"`](?:[\w.]*\.)?(\w{3,}?)(?:V\d)?:?['"`]""")
"""A name in quotes without its dialect, and without the version that TensorFlow has behind it ('tf.TopKV2')."""
_WORD = re.compile(r"[A-Za-z]\w+")
_STEP = re.compile(r"^in step .*$", re.MULTILINE)


def suspects(outcome: Outcome, program: str, members: int) -> list[int]:
    """Numbers of the members whose operators are named by the errors of a compiler, as many as half of them; else of
    those whose values are named (`c3_v0`) in the message or in lines that the exception was raised through; else of
    those whose own lines have the rarest words of the message in common (an operator that has no kernel, a dtype).
    None where nobody is named, or more than one of `MOST`."""
    lines, message = _words(outcome)
    texts = _own_text(program, members)
    quoted = (map(_plain, _QUOTED.findall(line)) for line in errors_of(message))
    errors = sorted({number for words in quoted for number in _alike(words, texts)})
    if 0 < len(errors) <= members // 2:
        return errors
    named = {number for number, _ in mentions(f"{lines}\n{message}") if number < members}
    said = _WORD.findall(_STEP.sub("", message))
    parts = [part for word in said for part in word.split("_")]
    found = sorted(named) or _alike((word for word in map(_plain, (*said, *parts)) if len(word) >= LEAST), texts)
    return found if len(found) <= members // MOST else []


def _words(outcome: Outcome) -> tuple[str, str]:
    """Lines that an exception was raised through, and what is said of the failure."""
    match outcome:
        case Rejected() as refusal:
            return "\n".join(refusal.lines), refusal.message
        case Unsupported(refusal=Rejected() as refusal):
            return _words(refusal)
        case Crash(detail=detail):
            return "", detail
    return "", ""


def _own_text(program: str, members: int) -> Mapping[int, str]:
    """By member, what stands behind its names in a program, up to the next name or the end of the line."""
    found = dict.fromkeys(range(members), "")
    for line in program.splitlines():
        for number, rest in mentions(line):
            if number in found:
                found[number] += f"{_plain(rest)}\n"
    return found


def _plain(text: str) -> str:
    return text.lower().replace("_", "")


def _alike(words: Iterable[str], texts: Mapping[int, str]) -> list[int]:
    """Members that the plain words fit best, each word by how few it fits (the logarithm of its inverse document
    frequency; Spärck Jones 1972)."""
    weights: dict[int, float] = {}
    for word in set(words):
        owners = [number for number, text in texts.items() if word in text]
        if 0 < len(owners) <= len(texts) // MOST:
            for number in owners:
                weights[number] = weights.get(number, 0.0) + log(len(texts) / len(owners))
    best = max(weights.values(), default=0.0)
    return [number for number, weight in sorted(weights.items()) if weight == best]
