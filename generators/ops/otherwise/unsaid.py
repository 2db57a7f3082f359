"""Why an operator is not said otherwise."""

from __future__ import annotations

from generators.ops.spec import Unsupported

NONE = Unsupported("there is no further way to say it")
PLAIN = Unsupported("it is said so in the simplest cases only")
"""Of a spelling that does not hold for all types and attributes."""
