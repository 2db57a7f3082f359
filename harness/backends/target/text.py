"""Program text made of other text."""

from __future__ import annotations

import re


def swapped(text: str, *changes: tuple[str, str]) -> str:
    """The text with each first one's only place taken by the second. Raises ValueError where it does not stand there
    exactly once, so that a change of the text elsewhere is noticed."""
    for old, new in changes:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} stands {text.count(old)} times in\n{text}")
        text = text.replace(old, new)
    return text


def renamed(text: str, old: str, new: str) -> str:
    """The text in which a name is another one."""
    return re.sub(rf"\b{re.escape(old)}\b", new, text)


def before(text: str, mark: str) -> str:
    """What stands before the first mark. Raises ValueError where there is none."""
    if mark not in text:
        raise ValueError(f"{mark!r} does not stand in\n{text}")
    return text.split(mark, 1)[0]
