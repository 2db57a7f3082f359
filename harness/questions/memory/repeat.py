"""Called twice and compiled twice: the same bits."""

from __future__ import annotations

from generators.graph import Graph
from harness.backends import Target
from harness.backends.target.text import renamed
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.questions import repeat

_REPEAT = '''

once = load
OUTPUTS = OWN_OUTPUTS + [("bool", ())] * {flags}  # what the program of the target reads is its own


def forget_compiled():
    """torch keeps what it compiled by function; elsewhere every load compiles anew."""
    import sys

    if "torch._dynamo" in sys.modules:
        sys.modules["torch._dynamo"].reset()


def same(a, b):
    """Bit for bit; any NaN equals any other."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return np.array(False)
    if a.dtype.kind == "c":
        return same(a.real.copy(), b.real.copy()) & same(a.imag.copy(), b.imag.copy())
    if a.dtype.kind in "fV":  # V: bfloat16
        nan = np.isnan(a)
        if not np.array_equal(nan, np.isnan(b)):
            return np.array(False)
        a, b = np.where(nan, 0, a), np.where(nan, 0, b)
    return np.array(a.tobytes() == b.tobytes())


def load(parameters):
    compiled = once(parameters)

    def run(*inputs):
        kept = [x.copy() for x in (*inputs, *parameters.values())]

        def call(f):
            return [np.array(output) for output in f(*inputs)]

        first, again = call(compiled), call(compiled)
        forget_compiled()
        fresh = call(once(parameters))
        unchanged = all(same(a, b) for a, b in zip(kept, (*inputs, *parameters.values())))
        flags = [same(a, b) for other in (again, fresh) for a, b in zip(first, other)]
        return [*first, *flags, np.array(unchanged)]

    return run
'''


def program(target: Target, graph: Graph) -> str:
    """The target's own program, and what calls it several times."""
    flags = len(repeat.CHECKS) * len(graph.outputs) + 1
    return renamed(target.program(graph), "OUTPUTS", "OWN_OUTPUTS") + _REPEAT.format(flags=flags)


REPEAT = Question(
    repeat.NAME, repeat.expect, program, inherits=(FORWARD.name,), joins=lambda graph: None, fills=1, large=True
)

QUESTIONS = (REPEAT,)
