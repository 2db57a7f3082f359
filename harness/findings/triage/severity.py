"""How bad a fault is. One rule: memory that is read or written where it must not be, as the reason says, counts first;
then the worst of the symptoms, in the order of SEVERITIES."""

from __future__ import annotations

import re
from collections.abc import Sequence

MEMORY = "memory damage"
SEVERITIES = (
    MEMORY,
    "silent wrong value",
    "crash",
    "hang",
    "wrong type",
    "rejection",
    "slow compilation",
    "inconsistency",
)
"""The worst first. What nobody notices is worse than what stops a program."""

OF_SYMPTOM = {
    "value": "silent wrong value",
    "special": "silent wrong value",
    "crash": "crash",
    "timeout": "hang",
    "type": "wrong type",
    "outputs": "wrong type",
    "rejected": "rejection",
    "slow": "slow compilation",
    "level": "inconsistency",
    "inconsistency": "inconsistency",
}
"""By symptom. A wrong number of outputs is a wrong type of the whole; two levels of one compiler that differ by more
than both may err are inconsistent, whichever is right."""

_MEMORY = re.compile(
    r"memory outside|outside is overwritten|uninitialised|past the end|damaged memory|memory that nobody wrote"
    r"|what (lay|was) in (its )?memory|or outside\b|what lies behind them",
    re.IGNORECASE,
)


def severity_of(symptoms: Sequence[str], reason: str = "") -> str:
    """One of SEVERITIES. symptoms: keys of `SYMPTOMS`; reason: for people, as entries of `known/` have it."""
    if _MEMORY.search(reason):
        return MEMORY
    return min((OF_SYMPTOM[symptom] for symptom in symptoms), key=SEVERITIES.index)
