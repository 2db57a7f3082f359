"""Does a program compile, and run once, in less than so many times what a plain one of the same target takes?"""

from __future__ import annotations

from generators.graph import Graph
from harness.backends import Target
from harness.backends.target.text import renamed
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.questions import compile_time

_MEASURED = '''

PLAIN = {plain}
own_load = load
OUTPUTS = [("float64", ())]  # how many times as long as the plain program it takes; 0 below {least:g} s


def seconds(load, parameters, inputs):
    """Processor time of compiling and the first run, that of compilers in other processes included. torch keeps what it
    has compiled, by function and by text; elsewhere every load compiles anew."""
    import os
    import resource
    import sys
    import tempfile

    def used():
        both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(one.ru_utime + one.ru_stime for one in both)

    with tempfile.TemporaryDirectory() as folder:
        kept = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        if "torch._dynamo" in sys.modules:
            sys.modules["torch._dynamo"].reset()
        try:
            started = used()
            load(parameters)(*inputs)
            return used() - started
        finally:
            os.environ.pop("TORCHINDUCTOR_CACHE_DIR")
            if kept is not None:
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = kept


def load(parameters):
    def run(*inputs):
        first = seconds(own_load, parameters, inputs)  # imports what the operators need, too
        if first < {least}:
            return [np.array(0.0)]
        other = {{}}
        exec(PLAIN, other)
        given = [np.zeros(shape, dtype) for dtype, shape in other["INPUTS"].values()]
        plain = seconds(other["load"], {{}}, given)
        if first > {limit} * plain:
            first = min(first, seconds(own_load, parameters, inputs))
        print(f"{{first:.2f}} s; the plain program {{plain:.3f}} s", file=sys.stderr)
        return [np.array(first / max(plain, 0.01) if first >= {least} else 0.0)]

    return run
'''


def program(target: Target, graph: Graph) -> str:
    """The target's own program, the plain one as a text, and what measures both."""
    plain = target.program(compile_time.plain(graph))
    text = repr(plain) if "'''" in plain or "\\" in plain else f"'''{plain}'''"
    own = renamed(target.program(graph), "OUTPUTS", "OWN_OUTPUTS")
    return f"import sys\n\n{own}{_MEASURED.format(plain=text, least=compile_time.LEAST, limit=compile_time.LIMIT)}"


def unsupported(target: Target, graph: Graph) -> str | None:
    """What the target refuses, or why it has no plain program."""
    return target.unsupported(graph) or target.unsupported(compile_time.plain(graph))


COMPILE_TIME = Question(
    compile_time.NAME, compile_time.expect, program, unsupported, inherits=(FORWARD.name,), symptom="slow",
    joins=lambda graph: None, fills=1,
)  # fmt: skip

QUESTIONS = (COMPILE_TIME,)
