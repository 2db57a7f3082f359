"""Two small transformers of our own, with every result on the way: does a row's depend on its batch, on padding behind
it, on chunks of the sequence, on a cache of keys and values?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.execute.pool import Job, Pool
from harness.execute.templates import render
from harness.studies.invariance.examine import EQUAL, NONE, VARIES, Cell
from oracles.determinism import Moment, compare, same
from oracles.judge.outcome import Outcome, Value

STYLES = {
    "gpt": "layer normalisation, GELU, learned positions",
    "llama": "root mean square normalisation, gated SiLU, rotary positions",
}
TARGETS = {"torch-eager": ("torch", False), "torch-inductor": ("torch", True), "jax-jit": ("jax", True)}
"""Framework, and whether it compiles."""
LAYERS, HEADS, SIZE, WORDS, TIMES, BATCH = 2, 4, 64, 101, 24, 8
SIZES = (1, 2, 3, 4)
TURNED = 3
MODULES = {"torch": ("torch",), "jax": ("jax", "jax.numpy")}


def parameters(style: str, seed: int) -> dict[str, np.ndarray]:
    """float32, by name; matrices are scaled so that results keep their size."""
    rng = np.random.default_rng(seed)

    def drawn(*shape: int) -> np.ndarray:
        return (rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    found = {"embedding": rng.normal(size=(WORDS, SIZE)).astype(np.float32), "norm": np.ones(SIZE, np.float32)}
    if style == "gpt":
        found["positions"] = rng.normal(size=(4 * TIMES, SIZE)).astype(np.float32)
    else:
        half = SIZE // HEADS // 2
        angles = np.arange(4 * TIMES)[:, None] * 10000.0 ** (-np.arange(half) / half)
        found |= {"sine": np.sin(angles).astype(np.float32), "cosine": np.cos(angles).astype(np.float32)}
    for layer in range(LAYERS):
        own = {name: drawn(SIZE, SIZE) for name in ("query", "key", "value", "output")}
        own |= {"up": drawn(SIZE, 4 * SIZE), "down": drawn(4 * SIZE, SIZE)}
        own |= {"gate": drawn(SIZE, 4 * SIZE)} if style == "llama" else {}
        own |= {name: np.ones(SIZE, np.float32) for name in ("norm1", "norm2")}
        found |= {f"{layer}.{name}": value for name, value in own.items()}
    return found


def job(style: str, target: str, seed: int) -> Job:
    """Its outputs: names of variations and results, then each result and what it is compared with."""
    framework, compile_ = TARGETS[target]
    own = parameters(style, seed)
    text = render(
        "studies/invariance/transformer.py.j2", framework=framework, compile=compile_, style=style, names=list(own),
        layers=LAYERS, heads=HEADS, size=SIZE, sizes=list(SIZES), turned=TURNED,
    )  # fmt: skip
    rng = np.random.default_rng(seed + 1)
    tokens, others = rng.integers(0, WORDS, (2, BATCH, TIMES))
    return Job(framework, MODULES[framework], text, {**own, "tokens": tokens, "others": others})


def examine(one: Pool, two: Pool, target: str, style: str, seed: int) -> list[Cell]:
    """All variations. one, two: pools whose processes have one thread and two."""
    task = job(style, target, seed)
    (whole,), (threads,) = one.run([task]), two.run([task])
    name = f"transformer {style}"
    if not isinstance(whole, Value):
        return [Cell(name, target, "size", NONE, why=str(whole).splitlines()[0])]
    names = [str(text) for text in whole.outputs[0]]
    pairs = dict(zip(names, zip(whole.outputs[1::2], whole.outputs[2::2], strict=True), strict=True))
    cells = []
    kinds = list(dict.fromkeys(text.split("/")[0] for text in names))
    sizes = [kind for kind in kinds if kind.startswith("size")]
    for kind in (*sizes, *(kind for kind in kinds if kind not in sizes and kind != "base")):
        own = [(text.split("/")[1], *pairs[text]) for text in names if text.split("/")[0] == kind]
        cells.append(_cell(name, target, kind, own))
    by_size = [cell for cell in cells if cell.variation.startswith("size")]
    other = tuple(int(cell.variation.split()[1]) for cell in by_size if cell.state != EQUAL)
    first = next((cell for cell in by_size if cell.state != EQUAL), by_size[0])
    largest = max(cell.largest for cell in by_size)
    merged = Cell(name, target, "size", first.state, largest, other, first.why)
    return [merged, *(cell for cell in cells if cell not in by_size), _threads(name, target, names, whole, threads)]


def _threads(name: str, target: str, names: Sequence[str], whole: Value, threads: Outcome) -> Cell:
    if not isinstance(threads, Value):
        return Cell(name, target, "threads", NONE, why=str(threads).splitlines()[0])
    base = [number for number, text in enumerate(names) if text.startswith("base/")]
    own = [(names[i].split("/")[1], threads.outputs[1 + 2 * i], whole.outputs[1 + 2 * i]) for i in base]
    return _cell(name, target, "threads", own)


def _cell(name: str, target: str, kind: str, own: Sequence[tuple[str, np.ndarray, np.ndarray]]) -> Cell:
    """own: results by name in their order, each with what it is compared with."""
    for place, got, wanted in own:
        if not same(got, wanted):
            found = compare(1, Moment(kind), place, wanted, got)
            assert found is not None
            _, last, right = own[-1]
            tokens = np.mean(last.argmax(-1) != right.argmax(-1))
            far = compare(1, Moment(kind), own[-1][0], right, last)
            told = f"first at {place}, {found.largest:g} ulps; next tokens that differ: {100 * tokens:.3g} %"
            return Cell(name, target, kind, VARIES, max(found.largest, far.largest if far else 0.0), why=told)
    return Cell(name, target, kind, EQUAL)
