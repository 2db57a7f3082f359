"""Inputs and parameters that are views."""

from __future__ import annotations

from generators.graph import Graph
from harness.backends import Target
from harness.backends.target.text import renamed
from harness.questions.forward import FORWARD
from harness.questions.question import Question
from oracles.questions import layouts

_VIEWS = '''

once = load
OUTPUTS = OWN_OUTPUTS * 2  # what the program of the target reads is its own
LAYOUTS = {layouts!r}


def viewed(array, layout):
    """The same values in other memory."""
    if not array.ndim or not array.size:
        return array
    if layout == "channels last" and array.ndim > 2:
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)
    if layout in ("transposed", "channels last"):
        return np.asfortranarray(array)
    if layout == "expanded":
        return np.broadcast_to(array[:1], array.shape)
    if layout == "reversed":
        return array[..., ::-1].copy()[..., ::-1]
    if layout == "offset":
        buffer = np.zeros(array.size + 1, array.dtype)
        view = buffer[1:].reshape(array.shape)
        steps = [0 if dim == 1 else step for dim, step in zip(view.shape, view.strides)]  # where any will do
        view = np.lib.stride_tricks.as_strided(view, strides=steps)
    else:
        buffer = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        view = buffer[..., ::2]
    view[...] = array
    return view


def load(parameters):
    {compiled}

    def run(*inputs):
        outputs = [np.array(output) for output in contiguous(*inputs)]
        return [*outputs, *strided(*[viewed(x, LAYOUTS[name]) for name, x in zip(INPUTS, inputs)])]

    return run
'''

_VIEWED = "once({name: viewed(x, LAYOUTS[name]) for name, x in parameters.items()})"


def program(target: Target, graph: Graph) -> str:
    """The target's own program, called with contiguous arrays and with views of the same values. Where there are no
    parameters the same compiled function gets both: what it assumed of the first may not hold for the second."""
    chosen = layouts.layouts(graph)
    if target.dialect.name == "torch":  # torch.from_numpy takes no negative strides, as documented
        chosen = {name: "channels last" if layout == "reversed" else layout for name, layout in chosen.items()}
    compiled = f"contiguous = once(parameters)\n    strided = {_VIEWED if graph.parameters else 'contiguous'}"
    return renamed(target.program(graph), "OUTPUTS", "OWN_OUTPUTS") + _VIEWS.format(layouts=chosen, compiled=compiled)


LAYOUTS = Question(
    layouts.NAME, layouts.expect, program, arrays=layouts.arrays, inherits=(FORWARD.name,),
    parts=lambda case, place: (layouts.given(case),), large=True,
)  # fmt: skip

QUESTIONS = (LAYOUTS,)
