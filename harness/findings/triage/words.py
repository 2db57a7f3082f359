"""What people call a fault: one line of it, and words for its parts."""

from __future__ import annotations

import re
from dataclasses import replace

from generators.ops import OPS
from harness.findings.triage.instance import Instance

LONGEST = 160
"""Characters of a headline."""

_ID = r"[a-z0-9]+(?:-[a-z0-9]+)+"
_OF_ANOTHER = re.compile(rf"^((As (in )?|A consequence of ){_ID}[:,;]? |{_ID}, of further \w+: )")
"""How a reason begins that says that it is another entry's."""

_INTERNAL = re.compile(
    r"\bDissent\b|\bdrawn graphs?\b|^No graph shows|\bno question asks\b|\bno dialect\b|^The operator `\w+` has"
    r"|\bour (bound|median)\b"
)
"""Sentences that tell how it was met."""
_CLAUSE = re.compile(
    r"(?<! what)(?<! those)(?<! all)(?<! one)(?<! that)(?<! which)(?<! and)(?<! or)(?<! of)(?<! is)(?<! are)(?<! but)"
    r",? (?:whose|where|when|which|whereas|while|so that|although|of which|for which|until|if|without|since|because"
    r"|that|as if|though)\b|, "
)
"""What a title may end in front of."""

SYMPTOM = {
    "value": "wrong value",
    "special": "wrong NaN, infinity or sign of zero",
    "type": "wrong dtype or shape",
    "outputs": "wrong number of outputs",
    "rejected": "valid program refused",
    "crash": "process ends",
    "timeout": "never returns",
    "level": "optimisation levels differ",
    "slow": "takes long to compile",
    "inconsistency": "differs in kind from itself",
}

STATE = {
    "new": "new",
    "known": "not reported yet",
    "reported": "reported upstream",
    "by design": "wanted so upstream",
    "fixed": "fixed in the installed version",
}


def headline(instance: Instance) -> str:
    """One line: the first sentence of the reason, without what it refers to, cut at a word where it is long; of a
    finding what it is about, and what was said."""
    if instance.kind == "finding":
        said = re.sub(r"^(\w+: )?mismatched .*?(?=expected|greatest error)", "", instance.message.splitlines()[0])
        about = " + ".join(instance.operators) or instance.id
        return _cut(f"{about} on {instance.subjects[0]}: {' '.join(said.split())}")
    text = _OF_ANOTHER.sub("", instance.reason)
    text = re.sub(r" \((as|see|compare) [^)]*\)", "", text)
    first = re.split(r"(?<=[a-z0-9)\"\]])\. (?=[A-Z])", text, maxsplit=1)[0].rstrip(".:")
    word = first.split(" ", 1)[0]  # the name of an operator stays as it is
    begins = text != instance.reason and word.isalpha() and word not in OPS
    return _cut(first[:1].upper() + first[1:] if begins else first)


def referred(instance: Instance) -> str:
    """The id of the entry whose cause it has, too, as the beginning of its reason says; empty: its cause is its own."""
    begins = _OF_ANOTHER.match(instance.reason)
    found = re.search(_ID, begins.group().removeprefix("As ").removeprefix("in ")) if begins else None
    return found.group() if found else ""


def plain_reason(instance: Instance) -> str:
    """The reason for those who do not know our entries: without ids of others, and without what it says of threads."""
    text = _OF_ANOTHER.sub("", instance.reason)
    text = re.sub(r" ?\((as|see|compare|tf|ort|torch|tvm|jax|xla|litert|openvino|onednn)[ -][^)]*\)", "", text)
    text = re.sub(rf"(; compare|, as) {_ID}(?=[.;:,])", "", text)
    sentences = re.split(r"(?<=[.])\s+(?=[A-Z])", text)
    ours = re.compile(rf"^(The (thread|request|change|pull request)\b|(See|Compare|As) {_ID})")
    return " ".join(one for one in sentences if not ours.search(one) and not _INTERNAL.search(one))


def title(instance: Instance, most: int = 110) -> str:
    """A headline as short as titles of issues are: without what stands in brackets, and cut at a colon, semicolon or
    comma, else in front of a clause, with the symptom in place of the rest."""
    whole = re.sub(r" \((?:[^()]|\([^()]*\)){12,}\)", "", headline(replace(instance, reason=plain_reason(instance))))
    text = whole
    for mark in ("; ", ": ", ", "):
        first = text.split(mark, 1)[0]
        if len(text) > most and 25 <= len(first) <= most and _balanced(first):
            text = first
    if len(text) > most or text.endswith("…"):
        places = [found.start() for found in _CLAUSE.finditer(text)]
        ends = [place for place in places if most * 0.6 <= place <= most and _balanced(text[:place])]
        text = text[: ends[-1]] if ends else text[:most].rsplit(" ", 1)[0].rstrip(",;: (") + " …"
    return text if text == whole else f"{text}: {SYMPTOM[instance.symptoms[0]]}"


def _balanced(text: str) -> bool:
    """Is every bracket closed?"""
    return text.count("(") == text.count(")")


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0].rstrip(",;: (") + " …"
