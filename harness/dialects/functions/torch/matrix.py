"""Functions of matrices that torch spellings may call. Read as text, as basic.py is."""

import torch


def formed(x, form):
    """Elements beyond 4 as zeros; then a dominant diagonal, or x x^T + n I; a power of two times that."""
    if form in ("vast", "minute"):
        exponent = {torch.float64: 716, torch.float16: 11}.get(x.dtype, 89)
        return formed(x, "shifted") * 2.0 ** (exponent if form == "vast" else -exponent)
    x = torch.where(x.abs() <= 4, x, torch.zeros_like(x))
    rows, columns = x.shape[-2:]
    if form == "gram":
        return x @ x.mT + rows * torch.eye(rows, dtype=x.dtype, device=x.device)
    diagonal = (4 * columns + 1) * torch.eye(rows, columns, dtype=x.dtype, device=x.device)
    return x + {"tamed": 0 * diagonal, "shifted": diagonal, "turned": diagonal.flip(-1)}[form]


def triangular_solve(x, b, lower, unit, transposed):
    t = formed(x, "tamed")
    if not unit:
        t = t + 5 * torch.eye(t.shape[-1], dtype=t.dtype, device=t.device)
    if transposed:
        t = t.mT
    return torch.linalg.solve_triangular(t, b, upper=lower == transposed, unitriangular=unit)


def triangular_solved(x, b, lower, unit, transposed):
    """The function that was there before torch.linalg: it takes the whole matrix, and says which triangle of it."""
    t = formed(x, "tamed")
    if not unit:
        t = t + 5 * torch.eye(t.shape[-1], dtype=t.dtype, device=t.device)
    return torch.triangular_solve(b, t, upper=not lower, transpose=transposed, unitriangular=unit)[0]


def qr_factor(x):
    """R with a positive diagonal."""
    r = torch.linalg.qr(x, mode="r").R
    return r * torch.sign(torch.diagonal(r, 0, -2, -1)).unsqueeze(-1)


def eigenvalues(x):
    """Of the symmetric matrix x + x^T."""
    return torch.linalg.eigvalsh(x + x.mT)


def twofold(x):
    """x + x^T of elements beyond 4 as zeros, with a dominant diagonal."""
    x = formed(x, "shifted")
    return x + x.mT


def lu_product(x):
    places, lower, upper = torch.linalg.lu(x)
    return places @ lower @ upper


def lu_unpacked_product(x):
    places, lower, upper = torch.lu_unpack(*torch.linalg.lu_factor_ex(x)[:2])
    return places @ lower @ upper


def qr_product(x):
    q, r = torch.linalg.qr(x)
    return q @ r


def householder_product(x):
    """Q as a matrix, by what lies on and above the diagonal."""
    reflectors, tau = torch.geqrf(x)
    return torch.linalg.householder_product(reflectors, tau) @ reflectors[..., : x.shape[-1], :].triu()


def ormqr_product(x):
    """The reflections one after the other."""
    reflectors, tau = torch.geqrf(x)
    return torch.ormqr(reflectors, tau, reflectors.triu())


def reflections(x):
    """I - tau v v^T one after the other, tau = 2 / |v|^2, v a column below its diagonal, which is 1."""
    x = formed(x, "tamed")
    v = x.tril(-1) + torch.eye(*x.shape[-2:], dtype=x.dtype, device=x.device)
    return torch.linalg.householder_product(x, 2 / (v * v).sum(-2))


def svd_product(x):
    u, s, v = torch.linalg.svd(x, full_matrices=False)
    return (u * s.unsqueeze(-2)) @ v


def eigh_product(x):
    """Of the symmetric matrix x + x^T."""
    values, vectors = torch.linalg.eigh(x + x.mT)
    return (vectors * values.unsqueeze(-2)) @ vectors.mT
