"""Faults of derivatives of operators of several steps and of matrices: of second ones, planted in torch-eager, and of
compiled first ones, planted in jax-jit. Plain results are right."""

from __future__ import annotations

from planted.faults.forward import Fault, with_operand
from planted.faults.modes import twice

_SAME = "lambda r, *rest: r"

SECOND_FAULTS = (
    Fault("backward pass detached", "solve", twice("bend(stopped)", 0, 1)),
    Fault("tangent of the matrix left out for the other side", "solve", twice(f"bend({_SAME}, stopped)", 0, 1)),
    Fault("transposed", "inverse", twice("bend(lambda r, *rest: r.mT.contiguous())", 0)),
    Fault("determinant taken for a constant", "det", twice("bend(lambda r, *rest: r / 2)", 0)),
    Fault("sign", "slogdet", twice("bend(lambda r, *rest: -r)", 0)),
    Fault("lower half lost", "cholesky", twice("bend(lambda r, *rest: torch.triu(r))", 0)),
    Fault("vectors taken for constants", "eigenvalues", twice("bend(stopped)", 0)),
    Fault("error of 1e-3", "pseudo_inverse", twice("bend(lambda r, *rest: r * 1.001)", 0)),
    Fault("backward pass detached", "singular_values", twice("bend(stopped)", 0)),
    Fault("factor 1 / 2", "cov", twice("bend(lambda r, *rest: r / 2)", 0)),
    Fault("distances taken for constants", "pairwise_distance", twice("bend(stopped)", 0, 1)),
    Fault("last element lost", "lp_pool2d", twice("bend(lambda r, *rest: last_lost(r))", 0)),
    Fault("mean taken for a constant", "layer_norm_plain", "({0} - torch.mean({0}, list(range(-{last}, 0)), True)"
          ".detach()) * torch.rsqrt(torch.var({0}, list(range(-{last}, 0)), correction=0, keepdim=True) + {epsilon})"),
    Fault("backward pass detached", "batch_norm_training", twice("bend(stopped)", 0, 1, 2)),
    Fault("2 / v^3 halved", "gaussian_nll", twice(f"bend({_SAME}, {_SAME}, lambda r, *rest: r / 2)", 0, 1, 2)),
    Fault("softmax taken for a constant", "cross_entropy", twice("bend(stopped)", 0, 1)),
    Fault("softmax taken for a constant", "attention", twice("bend(stopped, stopped)", 0, 1, 2)),
    Fault("state's tangent dropped", "lstm_cell", twice(f"bend({_SAME}, stopped)", 0, 1, 2, 3, 4, 5, 6)),
    Fault("gates taken for constants", "gru_cell", twice("bend(stopped)", 0, 1, 2, 3, 4, 5)),
)  # fmt: skip


def _stopped(position: int) -> str:
    return with_operand(position, f"jax.lax.stop_gradient({{{position}}})")


COMPILED_FAULTS = (
    Fault("stopped at the matrix", "solve", _stopped(0)),
    Fault("stopped at the state", "gru_cell", _stopped(1)),
    Fault("factor 2", "vector_norm", with_operand(0, "(2 * {0} - jax.lax.stop_gradient({0}))")),
    Fault("sign", "corrcoef", with_operand(0, "(2 * jax.lax.stop_gradient({0}) - {0})")),
    Fault("stopped at the bias", "attention_biased", _stopped(3)),
)
