"""What people call a fault: one line of it, and words for its parts."""

from __future__ import annotations

import re

from harness.findings.triage.instance import Instance

LONGEST = 160
"""Characters of a headline."""

SYMPTOM = {
    "value": "wrong value",
    "special": "wrong NaN, infinity or sign of zero",
    "type": "wrong dtype or shape",
    "outputs": "wrong number of outputs",
    "rejected": "valid program refused",
    "crash": "process ends",
    "timeout": "never returns",
    "level": "optimisation levels differ",
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
    text = re.sub(r"^(As (in )?|A consequence of )[\w-]+[:,;]? ", "", instance.reason)
    text = re.sub(r" \((as|see|compare) [^)]*\)", "", text)
    first = re.split(r"(?<=[a-z0-9)\"\]])\. (?=[A-Z])", text, maxsplit=1)[0].rstrip(".:")
    # a word with capitals or dots in it is a name, and stays as it is
    word = first.split(" ", 1)[0]
    plain = word.isalpha() and word.islower() and word not in instance.operators
    return _cut(first[:1].upper() + first[1:] if plain else first)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0].rstrip(",;: (") + " …"
