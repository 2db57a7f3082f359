"""The programs of the targets on a GPU, where there is none: their texts, and, on the device "meta", which has no
values, that no operator's program makes a tensor somewhere else than its operands are."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import chain, islice

import pytest

from generators.graph import Graph
from generators.ops import OPS
from generators.sweep import sweep
from harness.backends import TARGETS
from harness.backends.target.arithmetic import TF32_REFUSES, TORCH_TF32, TVM_CUDA, TVM_CUDA_REFUSES
from harness.backends.target.cuda import jax_on_cuda, torch_on_cuda
from harness.execute.pool import Job, Pool
from harness.search.hypothesis_profiles import nightly
from oracles.judge.outcome import Value

SOME = 5
"""Outside the nightly profile one operator of so many is run on the device "meta"."""

_ON_CUDA = [target for target in TARGETS.values() if target.library in ("torch", "jax") and target.device == "cuda"]


def _texts(name: str) -> dict[str, str]:
    target = TARGETS[name]
    own = {"load": target.load, "symbolic": target.symbolic, "gradient": target.gradient, **target.question_loads}
    return {question: text for question, text in own.items() if isinstance(text, str) and text}


def test_every_question_of_the_cpu_has_a_program_on_the_gpu() -> None:
    for cpu, gpu in (
        ("torch-eager", "torch-cuda"),
        ("torch-inductor", "torch-inductor-cuda"),
        ("jax-eager", "jax-cuda"),
        ("jax-jit", "jax-cuda-jit"),
    ):
        assert _texts(cpu).keys() == _texts(gpu).keys()
        assert len(_texts(gpu)) >= 8
        assert TARGETS[gpu].library == TARGETS[cpu].framework


@pytest.mark.parametrize("name", [target.name for target in _ON_CUDA])
def test_arrays_go_to_the_gpu_and_come_back(name: str) -> None:
    for text in _texts(name).values():
        if TARGETS[name].library == "jax":
            assert 'jax.devices("cuda")[0]' in text
            assert '"cpu"' not in text
        else:
            assert text.count("torch.from_numpy(") + text.count("torch.tensor(") == text.count(".cuda()") > 0
            assert not re.search(r"(?<!\.cpu\(\))\.numpy\(\)", text)


def test_what_is_made_in_parentheses_of_its_own() -> None:
    text = "values = [torch.from_numpy(np.array(x[(0)])) for x in xs]\nreturn [y.numpy() for y in values]\n"
    assert torch_on_cuda(text).endswith(
        "values = [torch.from_numpy(np.array(x[(0)])).cuda() for x in xs]\nreturn [y.cpu().numpy() for y in values]\n"
    )
    with pytest.raises(ValueError, match="a parenthesis is not closed"):
        torch_on_cuda("torch.from_numpy(x")
    assert 'export(f, platforms=["cuda"])' in jax_on_cuda('export(f, platforms=["cpu"])')


_WATCHED = """
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Watched(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.elsewhere, self.kernels = set(), set()

    def __torch_dispatch__(self, kernel, types, args=(), kwargs=None):
        results = kernel(*args, **(kwargs or {}))
        self.kernels.add(str(kernel).split(".")[1])
        left = any(isinstance(one, torch.Tensor) and one.device.type != "meta" for one in tree_leaves(results))
        if left and "lift_fresh" not in str(kernel):  # by which numbers of Python become a tensor that is sent then
            self.elsewhere.add(str(kernel))
        return results


def watched(source, types):
    names = dict(globals())
    exec(source, names)
    watch = Watched()
    operands = [torch.empty(shape, dtype=getattr(torch, dtype), device="meta") for dtype, shape in types]
    try:
        with watch:
            results = names["model"](*operands)
        watch.elsewhere |= {"a result" for one in results if one.device.type != "meta"}
        ran = "ran"
    except (NotImplementedError, RuntimeError) as error:  # it needs values
        ran = f"{type(error).__name__}: {error}".splitlines()[0].replace("|", "/")
    return f"{ran}|{' '.join(sorted(watch.elsewhere))}|{' '.join(sorted(watch.kernels))}"


def load(parameters):
    def run():
        said = [f"{i}|{watched(source, types)}" for i, (source, types) in enumerate(zip(SOURCES, TYPES))]
        return [np.frombuffer(chr(10).join(said).encode(), "uint8").copy()]

    return run
"""


def _graphs(operator: str) -> list[Graph]:
    """The first six cases of its sweep, and of those of one dtype all whose programs differ in more than numbers."""
    target, found = TARGETS["torch-eager"], {}
    first = enumerate(case.graph for case in islice(sweep(operator), 6))
    other = (("", case.graph) for case in sweep(operator, dtypes=("float32",)))
    for number, graph in chain(first, other):
        if not target.unsupported(graph):
            found.setdefault((number, re.sub(r"\d", "", target.dialect.source(graph, ""))), graph)
    return list(found.values())


@cache
def _noted() -> dict[str, list[tuple[str, str, str]]]:
    """operator -> for each of some cases: how it ended, what was made elsewhere, and the kernels that ran."""
    target, looked_at = TARGETS["torch-eager"], tuple(OPS)[:: 1 if nightly() else SOME]
    listed = [(operator, graph) for operator in looked_at if target.expresses(operator) for graph in _graphs(operator)]
    leaves = [(*graph.inputs, *graph.parameters) for _, graph in listed]
    text = "\n".join(
        [
            "import ml_dtypes\nimport numpy as np\nimport torch\nimport torch._subclasses.fake_tensor",
            "TARGET, INPUTS, PARAMETERS, OUTPUTS = 'meta', {}, {}, [('uint8', (0,))]",
            f"SOURCES = {[target.dialect.source(graph, '') for _, graph in listed]!r}",
            f"TYPES = {[[(leaf.type.dtype, leaf.type.shape) for leaf in own] for own in leaves]!r}",
            _WATCHED,
        ]
    )
    with Pool() as pool:
        outcome = pool.run([Job("torch", ("torch",), text, {})], confirm=False)[0]
    assert isinstance(outcome, Value), outcome
    noted: dict[str, list[tuple[str, str, str]]] = {}
    for line in outcome.outputs[0].tobytes().decode().splitlines():
        number, ran, elsewhere, kernels = line.split("|")
        noted.setdefault(listed[int(number)][0], []).append((ran, elsewhere, kernels))
    return noted


@pytest.mark.slow
def test_no_operator_leaves_the_device() -> None:
    noted = _noted()
    wrong = {operator: found for operator, runs in noted.items() for _, found, _ in runs if found}
    assert not wrong
    ended = Counter(ran == "ran" for runs in noted.values() for ran, _, _ in runs)
    assert ended[True] > (4000 if nightly() else 4000 // SOME)
    assert ended[False] < 0.03 * ended[True]


_PRODUCTS = {
    *("mm", "bmm", "addmm", "baddbmm", "addbmm", "convolution", "_cdist_forward", "_thnn_fused_gru_cell"),
    *("_thnn_fused_lstm_cell", "geqrf", "linalg_lu", "linalg_lu_factor_ex", "linalg_qr", "linalg_lstsq", "linalg_pinv"),
    *("linalg_inv_ex", "linalg_cholesky_ex", "linalg_matrix_exp", "linalg_solve_triangular", "linalg_ldl_factor_ex"),
    *(
        "_linalg_det",
        "_linalg_eigh",
        "_linalg_slogdet",
        "_linalg_solve_ex",
        "_linalg_svd",
        "linalg_householder_product",
    ),
}
"""Kernels in which matrices are multiplied."""
_OF_OTHERS = {"complex_matmul", "matmul_widened"}
"""What never takes float32."""


@pytest.mark.slow
def test_what_multiplies_matrices_is_in_tf32_or_refused() -> None:
    products = {op for op, runs in _noted().items() if any(_PRODUCTS & set(kernels.split()) for *_, kernels in runs)}
    assert len(products) > (50 if nightly() else 50 // SOME)
    for operator in products:
        names = {operator, OPS[operator].base}
        refused = any((name, "float32") in TF32_REFUSES for name in names)
        assert refused or names & (TORCH_TF32.products | _OF_OTHERS), operator


_FUNCTIONS = re.compile(
    r"relax\.op\.(a?(?:cos|sin|tan)h?|atan2|erf|exp|log|log10|log2|log1p|log_add_exp|power|sigmoid"
    r"|nn\.(?:softmax|log_softmax|gelu|gelu_tanh|silu|softplus|selu|attention))\("
)
_BESIDE = {"dilation2d", "lp_pool1d", "lp_pool2d", "max_unpool2d"}
"""Their programs carry a function named `window`, and do not call it."""


def test_what_is_composed_of_approximated_functions_is_refused() -> None:
    target = TARGETS["tvm-O0"]
    assert target.dialect is TARGETS["tvm-cuda"].dialect
    composed = set()
    for operator in (name for name in OPS if target.expresses(name)):
        for graph in (case.graph for case in islice(sweep(operator, dtypes=("float32",)), 4)):
            floating = "float32" in {type_.dtype for type_ in graph.types.values()}
            if floating and not target.unsupported(graph) and _FUNCTIONS.search(target.dialect.source(graph, "")):
                composed.add(operator)
    assert len(composed) > 60
    direct = {operator for operator, _ in TVM_CUDA.functions}
    refused = {operator for operator, dtype in TVM_CUDA_REFUSES if dtype == "float32"}
    assert composed - direct - refused - _BESIDE == set()
    assert not direct & refused
