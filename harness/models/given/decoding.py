"""Language models that decode with a cache of keys and values: which inputs are the cache, and the calls that show more
than one: step by step, each given what the one before returned, and all tokens at once.

The rule: an input whose name contains `past`, `cache` or `kv` is a part of the cache where one output has the same name
but for words such as these, `present` and `new` (`past_key_values.0.key` and `present.0.key`); where names do not tell,
where as many outputs, the last ones, can be the grown inputs in their order. Both are floating, of rank 3 at least, and
agree in all dimensions that are known but one: the last one that varies in the input, which counts tokens and varies in
the output, too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.conversions.model_file import Port, Signature
from harness.models.given.inputs import OTHER, Sets, drawn
from oracles.judge.outcome import Outcome, Value

CACHED = re.compile("past|cache|(?<![a-z])kv(?![a-z])", re.IGNORECASE)
PAST = r"past_key_values?|present_key_values?|key_value_cache|past|present|cache|kv|new|updated|inputs?|outputs?|in|out"
FLOATS = ("float32", "float16", "bfloat16", "float64")
FITTED = "masks are 1 and positions go on from the end of the cache"
"""What is said of sets that are drawn for a model with a cache."""
PROMPTS = (1, 2, 4, 8)
"""So many tokens the first call has: the least that the model takes."""
PASTS = (0, 4)
"""Tokens in the cache of the first call: none, where the model takes an empty one; else drawn numbers."""


@dataclass(frozen=True)
class Cache:
    """pairs: (place of the input, place of the output) of each part; axes: that counts tokens, by pair."""

    pairs: tuple[tuple[int, int], ...]
    axes: tuple[int, ...]

    def fed(self, arrays: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """The inputs of a call with the cache that the one before returned. Raises IndexError where that is missing."""
        found = list(arrays)
        for place, output in self.pairs:
            found[place] = np.ascontiguousarray(outputs[output])
        return tuple(found)


@dataclass(frozen=True)
class Step:
    """A call. before: the number of the set of inputs whose outputs are its cache (None: its inputs are as drawn)."""

    title: str
    before: int | None = None


@dataclass(frozen=True)
class Course:
    """The calls that follow `start` sets of inputs. steps: one for each further set; apart: numbers of the sets that
    give the tokens of `whole` one after the other; whole: of the one with all of them at once (None: there is none)."""

    cache: Cache
    start: int
    steps: tuple[Step, ...]
    apart: tuple[int, ...]
    whole: int | None
    told: str

    def step(self, number: int) -> Step | None:
        """What a set of inputs is; None for one of those before."""
        return self.steps[number - self.start] if number >= self.start else None

    def before(self, number: int) -> int | None:
        """The set whose outputs are the cache of this one."""
        step = self.step(number)
        return step.before if step else None

    def earlier(self, number: int) -> Iterator[int]:
        """All sets that this one follows from."""
        before = self.before(number)
        while before is not None:
            yield before
            before = self.before(before)


def cache_of(ports: Signature) -> Cache | None:
    """The cache that a model takes and returns; None where it has none."""
    taken = [place for place, port in enumerate(ports.inputs) if CACHED.search(port.name) and _floating(port)]
    names = [_plain(port.name) for port in ports.outputs]
    named = [
        (place, names.index(name)) for place in taken if names.count(name := _plain(ports.inputs[place].name)) == 1
    ]
    named = [pair for pair in named if _axis(ports.inputs[pair[0]], ports.outputs[pair[1]]) is not None]
    last = range(len(names) - len(taken), len(names))
    for pairs in (named, list(zip(taken, last, strict=True)) if len(taken) < len(names) else []):
        axes = [_axis(ports.inputs[place], ports.outputs[output]) for place, output in pairs]
        whole = [axis for axis in axes if axis is not None]
        if pairs and len(whole) == len(pairs) and len({output for _, output in pairs}) == len(pairs):
            return Cache(tuple(pairs), tuple(whole))
    return None


def _floating(port: Port) -> bool:
    return port.dtype in FLOATS and port.shape is not None


def _plain(name: str) -> str:
    """Without the words that tell an input from an output."""
    parts = re.split(r"[^a-z0-9]+", re.sub(rf"(?<![a-z])(?:{PAST})(?![a-z])", " ", name.lower()))
    return " ".join(part for part in parts if part)


def _axis(taken: Port, given: Port) -> int | None:
    """The axis in which a part of the cache grows; None where the output cannot be the grown input."""
    if taken.shape is None or given.shape is None or given.dtype != taken.dtype or len(given.shape) != len(taken.shape):
        return None
    free = [axis for axis, size in enumerate(taken.shape) if size is None]
    others = [axis for axis in range(len(taken.shape)) if not free or axis != free[-1]]
    if not free or len(taken.shape) < 3:
        return None
    same = all(
        None in (taken.shape[axis], given.shape[axis]) or taken.shape[axis] == given.shape[axis] for axis in others
    )
    return free[-1] if same and given.shape[free[-1]] is None else None


@dataclass(frozen=True)
class Roles:
    """What the other inputs of a model with a cache are, by place. masks: as long as the cache with the new tokens;
    places: numbers of the new tokens; flags: is there a cache?; tokens: have the new tokens along axis 1. All others
    stay the same in each call."""

    masks: tuple[int, ...]
    places: tuple[int, ...]
    flags: tuple[int, ...]
    tokens: tuple[int, ...]

    def shapes(self, ports: Sequence[Port], cache: Cache, past: int, new: int) -> dict[str, tuple[int, ...]]:
        """Of all inputs that depend on how many tokens are in the cache and new, the batch being 1 where it is free."""
        found = {}
        for (place, _), axis in zip(cache.pairs, cache.axes, strict=True):
            found[ports[place].name] = _shape(ports[place], axis, past)
        for places, size in ((self.masks, past + new), (self.places, new), (self.tokens, new)):
            for place in places:
                axis = 1 if place in self.tokens else len(ports[place].shape or ()) - 1
                found[ports[place].name] = _shape(ports[place], axis, size)
        return found

    def consistent(self, arrays: Sequence[np.ndarray], cache: Cache) -> tuple[np.ndarray, ...]:
        """The inputs with masks that hide nothing, and numbers that go on from the end of the cache."""
        past, found = arrays[cache.pairs[0][0]].shape[cache.axes[0]], list(arrays)
        for place in self.masks:
            found[place] = np.ones_like(arrays[place])
        for place in self.places:
            numbers = past + np.arange(arrays[place].shape[-1])
            found[place] = np.broadcast_to(numbers, arrays[place].shape).astype(arrays[place].dtype)
        for place in self.flags:
            found[place] = np.full_like(arrays[place], past > 0)
        return tuple(np.ascontiguousarray(array) for array in found)


def _shape(port: Port, axis: int, size: int) -> tuple[int, ...]:
    """With a size along an axis, and 1 in whatever else is free; what the file says stays."""
    return tuple(
        (size if place == axis else 1) if known is None else known for place, known in enumerate(port.shape or ())
    )


def roles_of(ports: Sequence[Port], cache: Cache) -> Roles:
    """By the names and dtypes of the inputs."""
    parts = {place for place, _ in cache.pairs}
    found: dict[str, list[int]] = {"masks": [], "places": [], "flags": [], "tokens": []}
    for place, port in enumerate(ports):
        name, whole, rank = port.name.lower(), (port.dtype or "")[:3] in ("int", "uin", "boo"), len(port.shape or ())
        if place in parts:
            continue
        if "use_cache" in name:
            found["flags"].append(place)
        elif "position" in name and whole and rank in (1, 2, 3):
            found["places"].append(place)
        elif "mask" in name and whole and rank == 2 and "encoder" not in name:
            found["masks"].append(place)
        elif (whole and rank >= 2 and "encoder" not in name) or ("embeds" in name and rank == 3):
            found["tokens"].append(place)
    return Roles(*(tuple(found[key]) for key in ("masks", "places", "flags", "tokens")))


def usual_size(ports: Sequence[Port], roles: Roles, tops: Mapping[str, int]) -> int:
    """So many tokens are in the cache, and as many new, in sets that are drawn: few enough for the table of places."""
    rows = [tops[ports[place].name] for place in roles.places if ports[place].name in tops]
    return max(1, min(OTHER // 2, *(row // 2 for row in rows))) if rows else OTHER // 2


def drawing(
    ports: Signature, shapes: Mapping[str, Sequence[int]], tops: Mapping[str, int]
) -> tuple[Mapping[str, Sequence[int]], Callable[[Sequence[np.ndarray]], tuple[np.ndarray, ...]]]:
    """Shapes of inputs, those that are given among them, of which sets are drawn, and what is made of a set: nothing
    but for a model with a cache."""
    cache = cache_of(ports)
    if cache is None:
        return shapes, tuple
    roles = roles_of(ports.inputs, cache)
    size = usual_size(ports.inputs, roles, tops)
    usual = roles.shapes(ports.inputs, cache, size, size)
    for place in roles.tokens:  # a file may fix how many there are
        fixed = (ports.inputs[place].shape or (0, None))[1]
        usual = roles.shapes(ports.inputs, cache, size, size if fixed is None else fixed)
    return {**usual, **shapes}, lambda arrays: roles.consistent(arrays, cache)


def course_of(
    ports: Signature,
    sets: Sets,
    steps: int,
    seed: int,
    tops: Mapping[str, int],
    span: tuple[float, float] | None,
    call: Callable[[Sequence[np.ndarray]], Outcome],
) -> tuple[Sets, Course | None, str]:
    """The sets of inputs with those of the calls of a course, the course, and what there is to say of it: why there is
    none where the model has a cache; nothing where it has none. steps: so many with one token each follow the first
    call; tops: below what the values of inputs are; span: what they are drawn from; call: what comes of a set."""
    cache = cache_of(ports)
    if cache is None or not steps:
        return sets, None, ""
    roles = roles_of(ports.inputs, cache)
    fixed = {size for place in roles.tokens if (size := (ports.inputs[place].shape or (0, 0))[1]) is not None}
    if not roles.tokens or len(fixed) > 1:
        return sets, None, "steps of decoding were not examined: no input holds the tokens"
    width = fixed.pop() if fixed else 1
    prompts = (width,) if width > 1 or not all(_open(ports.inputs[place]) for place in roles.tokens) else PROMPTS
    count = max(prompts) + (steps + 1) * width

    def arrays_of(past: int, first: int, new: int) -> tuple[np.ndarray, ...]:
        """The inputs of a call with some of the tokens; its cache is drawn."""
        shapes = roles.shapes(ports.inputs, cache, past + first, new)
        free = _freed(ports.inputs, roles)
        (whole,) = drawn(free, seed, 1, roles.shapes(free, cache, past, count), span, tops)
        (found,) = drawn(ports.inputs, seed, 1, _others(ports.inputs, shapes), span, tops)
        cut = list(found)
        for place in roles.tokens:
            cut[place] = whole[place][:, first : first + new]
        return roles.consistent(cut, cache)

    for past in PASTS:
        for prompt in prompts:
            total = prompt + steps * width
            first = call(arrays_of(past, 0, prompt))
            if not _grew(first, cache, past + prompt) or not _grew(
                call(arrays_of(past, prompt, width)), cache, past + prompt + width
            ):
                continue
            whole = len(prompts) > 1 and _grew(call(arrays_of(past, 0, total)), cache, past + total)
            made = [(Step(_prompt(prompt, past)), arrays_of(past, 0, prompt))]
            start = len(sets)
            for number in range(steps):
                step = Step(f"step {number + 1} of decoding", start + number)
                made.append((step, arrays_of(past, prompt + number * width, width)))
            apart = tuple(range(start, start + len(made)))
            if whole:
                made.append((Step(f"all {total} tokens at once"), arrays_of(past, 0, total)))
                made.append((Step(f"a step after all {total} at once", apart[-1] + 1), arrays_of(past, total, width)))
            told = f"{steps} steps of {_tokens(width)} after {_prompt(prompt, past)}"
            told += f", and {_tokens(total)} at once" if whole else "; other numbers of tokens are refused"
            titled, arrays = zip(*made, strict=True)
            course = Course(cache, start, titled, apart, apart[-1] + 1 if whole else None, told)
            return (*sets, *arrays), course, ""
    return (
        sets,
        None,
        "steps of decoding were not examined: no cache, empty or of 4 tokens, is taken and returned grown",
    )


def _open(port: Port) -> bool:
    return port.shape is not None and port.shape[1] is None


def _freed(ports: Sequence[Port], roles: Roles) -> list[Port]:
    """With any number of tokens, of which calls have parts."""
    return [
        replace(port, shape=(port.shape[0], None, *port.shape[2:])) if place in roles.tokens and port.shape else port
        for place, port in enumerate(ports)
    ]


def _others(ports: Sequence[Port], shapes: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    """Shapes of all inputs: those that do not depend on tokens have 1 and OTHER in what is free."""
    found = {name: tuple(shape) for name, shape in shapes.items()}
    for port in ports:
        if port.name not in found and port.shape is not None:
            found[port.name] = tuple(
                (1 if place == 0 else OTHER) if d is None else d for place, d in enumerate(port.shape)
            )
    return found


def _grew(outcome: Outcome, cache: Cache, size: int) -> bool:
    """Does the cache that a call returns hold so many tokens?"""
    if not isinstance(outcome, Value):
        return False
    shapes = [outcome.outputs[output].shape for _, output in cache.pairs if output < len(outcome.outputs)]
    return len(shapes) == len(cache.pairs) and all(
        axis < len(shape) and shape[axis] == size for shape, axis in zip(shapes, cache.axes, strict=True)
    )


def _tokens(count: int) -> str:
    return f"{count} token{'s' * (count != 1)}"


def _prompt(count: int, past: int) -> str:
    return f"{_tokens(count)} with {f'a drawn cache of {past}' if past else 'an empty cache'}"
