"""The group O(A): its Lie algebra, its elements, alignment by reflections and frames (M1, M3, M5, M8).

Everything happens in the eigenbasis A = Q Λ Qᵀ, where both the algebra and the group are explicit, singular
A included. The *standard frame* is S = √|Λ| Qᵀ (with 1 in place of zero eigenvalues): SᵀJS = A with
J = diag(±1, 0), so g ∈ O(A) means S g S⁻¹ ∈ O(J).
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gortho import checks

if TYPE_CHECKING:
    from gortho.forms import QuadraticForm

#: A vector is null for `align` and `frame` when |q(x)| is below this fraction of |x|² max|λ|.
NULL_TOLERANCE = 1e-12
#: A form is diagonal when no A_ij is above this share of the mean of A_ii and A_jj (the geometric one).
DIAGONAL = 1e-2
#: Coordinates are brought to one size before a form is diagonalised where its eigenvalues differ by more than this
#: share: the least of them would have too few digits. Rounds of that; each halves the logarithms of what is left.
BADLY_SCALED, BALANCING = 1e-4, 24


def random_generator(seed: int | torch.Generator) -> torch.Generator:
    """A separate CPU generator, so that the global one is not affected."""
    return seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(int(seed))


def haar(
    n: int, batch: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Haar-distributed elements of O(n), or for complex numbers of U(n), shape ``(*batch, n, n)``."""
    Q, R = torch.linalg.qr(torch.randn(*batch, n, n, dtype=dtype, generator=generator))
    return Q * R.diagonal(dim1=-2, dim2=-1).sgn()[..., None, :]


def uniform(most: float, generator: torch.Generator, *shape: int) -> Tensor:
    """Numbers uniform in [-most, most], float64."""
    return (2 * torch.rand(*shape, dtype=torch.float64, generator=generator) - 1) * most


def symmetric_basis(n: int) -> Tensor:
    """Orthonormal basis of the symmetric matrices, float64 ``(n(n+1)/2, n, n)``."""
    i, j = torch.triu_indices(n, n)
    basis = torch.zeros(len(i), n, n, dtype=torch.float64)
    k = torch.arange(len(i))
    basis[k, i, j] = basis[k, j, i] = torch.where(i == j, 1.0, 0.5**0.5).double()
    return basis


def skew_basis(n: int) -> Tensor:
    """Basis E_ij - E_ji of the skew matrices, float64 ``(n(n-1)/2, n, n)``."""
    i, j = torch.triu_indices(n, n, 1)
    basis = torch.zeros(len(i), n, n, dtype=torch.float64)
    k = torch.arange(len(i))
    basis[k, i, j], basis[k, j, i] = 1.0, -1.0
    return basis


def balance(A: Float[Tensor, "n n"]) -> Float[Tensor, " n"]:
    """Factors d, powers of two, by which the rows of d_i A_ij d_j are of about one size."""
    d = torch.ones(len(A), dtype=A.dtype)
    for _ in range(BALANCING):
        rows = (d[:, None] * A * d).abs().amax(1)
        d = d / torch.where(rows > 0, rows, 1.0).sqrt()
    return torch.exp2(d.log2().round())


def algebra_basis(A: Float[Tensor, "*batch n n"], zero: int = 0) -> Float[Tensor, "*batch d n n"]:
    """Orthonormal basis of so(A) = {X : XᵀA + AX = 0}, batched, shape ``(..., d, n, n)``.

    In the eigenbasis the condition reads λ_i Y_ij + λ_j Y_ji = 0, so each pair i < j gives the one element
    (λ_j E_ij - λ_i E_ji)/√(λ_i² + λ_j²); supports differ, so the basis is orthonormal without a solve. Where
    both eigenvalues are zero all four entries are free. ``zero`` is the number of zero eigenvalues.
    """
    n = A.shape[-1]
    values, Q = torch.linalg.eigh(A)
    order = values.abs().argsort(dim=-1)  # zero eigenvalues first
    values = values.gather(-1, order)
    Q = Q.gather(-1, order[..., None, :].expand_as(Q))
    rows, columns = torch.triu_indices(n, n, 1, device=A.device)
    keep = columns >= zero  # at least one of the pair is not a null direction
    i, j = rows[keep], columns[keep]
    Y = A.new_zeros(*A.shape[:-2], len(i), n, n)
    pair = torch.arange(len(i), device=A.device)
    li, lj = values[..., i], values[..., j]
    li = torch.where(i < zero, torch.zeros_like(li), li)
    length = torch.hypot(li, lj)
    Y[..., pair, i, j] = lj / length
    Y[..., pair, j, i] = -li / length
    if zero:
        free = A.new_zeros(zero * zero, n, n)
        free[:, :zero, :zero] = torch.eye(zero * zero, dtype=A.dtype, device=A.device).reshape(-1, zero, zero)
        Y = torch.cat([Y, free.expand(*A.shape[:-2], -1, -1, -1)], dim=-3)
    return Q[..., None, :, :] @ Y @ Q.mT[..., None, :, :]


def algebra_distance(form: QuadraticForm, other: QuadraticForm) -> float:
    """d_PA(so(A), so(B)) as the norm of what one basis has outside the other: exact for tiny angles too."""
    P, Q = sorted((algebra_basis(f.matrix, f.signature.zero).flatten(1) for f in (form, other)), key=len)
    return float(torch.linalg.matrix_norm(Q - (Q @ P.T) @ P))


def reflection(w: Float[Tensor, "*batch n"], A: Float[Tensor, "n n"]) -> Float[Tensor, "*batch n n"]:
    """R_w = I - 2 w wᵀA/(wᵀAw), in O(A) and its own inverse, for ``w (..., n)`` with q(w) ≠ 0 (M3)."""
    wA = w @ A
    q = (wA * w).sum(-1)[..., None, None]
    return torch.eye(w.shape[-1], dtype=w.dtype, device=w.device) - 2 * w[..., :, None] * wA[..., None, :] / q


def align_unit(
    x: Float[Tensor, "*batch n"], e: Float[Tensor, "*batch n"], A: Float[Tensor, "n n"], inside: bool = False
) -> Float[Tensor, "*batch n n"]:
    """W ∈ O(A) with W x = e and W² = I, for q(x) = q(e) = ±1: the better of R_{x-e} and -R_{x+e} (M3).

    Since q(x-e) + q(x+e) = ±4, the larger is at least 2 in size. With ``inside``, R_e R_{x+e} in place of -R_{x+e}, so
    that everything orthogonal to x and e is fixed: this is no involution, but -R would flip the vectors that a frame
    has already aligned.
    """
    minus, plus = x - e, x + e
    use_minus = ((minus @ A) * minus).sum(-1).abs() >= ((plus @ A) * plus).sum(-1).abs()
    W = reflection(torch.where(use_minus[..., None], minus, plus), A)
    return torch.where(use_minus[..., None, None], W, reflection(e, A) @ W if inside else -W)


def boosts(rapidity: Float[Tensor, "k m"], p: int, n: int) -> Float[Tensor, "k {n} {n}"]:
    """Boosts of the planes of x_i and x_{p+i} by these rapidities, which commute."""
    b = torch.eye(n, dtype=torch.float64).repeat(len(rapidity), 1, 1)
    planes = torch.arange(rapidity.shape[1])
    b[:, planes, planes] = b[:, p + planes, p + planes] = rapidity.cosh()
    b[:, planes, p + planes] = b[:, p + planes, planes] = rapidity.sinh()
    return b


def preserves(h: Tensor, J: Tensor, zero: int, tolerance: float) -> Bool[Tensor, ...]:
    """Whether hᵀJh = J, relative to 1 + ‖h‖², the size of what cancels; for singular J, h must be invertible, too."""
    size = torch.linalg.matrix_norm(h)
    inside = torch.linalg.matrix_norm(h.mT @ J @ h - J) <= tolerance * (1 + size**2)
    return inside & (torch.linalg.svdvals(h)[..., -1] > tolerance * size) if zero else inside


class OrthogonalGroup:
    """O(A) = {g : gᵀAg = A} of a quadratic form.

    >>> import gortho
    >>> lorentz = gortho.QuadraticForm.minkowski().group()
    >>> lorentz.algebra().shape       # three rotations, three boosts
    torch.Size([6, 4, 4])
    >>> g = lorentz.sample(5, seed=1, max_boost=2.0)
    >>> bool(lorentz.contains(g).all())
    True
    """

    def __init__(self, form: QuadraticForm):
        self.form = form
        A = form.matrix
        scale = torch.ones(form.n, dtype=A.dtype)
        values, Q = torch.linalg.eigh(A)
        is_zero = values.abs() <= form.tolerance * values.abs().max()
        if not form.signature.zero and float(values.abs().min()) < BADLY_SCALED * float(values.abs().max()):
            scale = balance(A)
            values, Q = torch.linalg.eigh(scale[:, None] * A * scale)
            is_zero = torch.zeros_like(is_zero)
        # Standard order: positive, negative, zero, each by falling size.
        kind = torch.where(is_zero, 2, torch.where(values > 0, 0, 1))
        order = sorted(range(form.n), key=lambda i: (int(kind[i]), -abs(float(values[i]))))
        values, Q = values[order], Q[:, order]
        size = torch.where(is_zero[order], torch.ones_like(values), values.abs()).sqrt()
        self._standard = size[:, None] * Q.T / scale  # S
        # S⁻¹; its columns are references e with q(e) = ±1 (or 0).
        self._standard_inverse = scale[:, None] * Q / size
        self._A = A

    def __repr__(self) -> str:
        return f"{self.form.group_name} of {self.form.law()}"

    @property
    def dimension(self) -> int:
        """Number of generators: n(n-1)/2 if A is not singular."""
        n, zero = self.form.n, self.form.signature.zero
        return (n - zero) * (n - zero - 1) // 2 + zero * n

    def algebra(self) -> Float[Tensor, "d n n"]:
        """Orthonormal basis of the Lie algebra so(A), float64 ``(d, n, n)``; in planes of the axes, if A is diagonal.

        The basis nearest to A⁻¹(E_ij - E_ji), each of length one: for a diagonal A these are orthonormal, and mix two
        coordinates each. Of other forms, generators lie in planes of the eigenvectors.
        """
        basis, zero = algebra_basis(self._A, self.form.signature.zero), self.form.signature.zero
        size, apart = self._A.diagonal().abs(), (self._A - self._A.diagonal().diag()).square()
        diagonal = bool((apart <= DIAGONAL**2 * size[:, None] * size).all())  # in any units
        if zero or not len(basis) or not diagonal:
            return basis
        wished = torch.linalg.solve(self._A, skew_basis(self.form.n))
        wished = wished / torch.linalg.matrix_norm(wished)[:, None, None]
        U, _, Vh = torch.linalg.svd(wished.flatten(1) @ basis.flatten(1).mT)
        return ((U @ Vh) @ basis.flatten(1)).reshape(basis.shape)

    def reference(self, sign: int) -> Tensor:
        """A fixed vector e with q(e) = sign: the eigenvector of A with the largest eigenvalue of that sign.

        Where the coordinates of A differ much in size, it is an eigenvector in units in which they do not.
        """
        p, q, _ = self.form.signature
        if (sign > 0 and p) or (sign < 0 and q):
            return self._standard_inverse[:, 0 if sign > 0 else p].clone()
        raise ValueError(f"the form {self.form} takes no value of sign {sign:+d}")

    def contains(self, g: Any, tolerance: float = 1e-10) -> Bool[Tensor, ...]:
        """Whether gᵀAg = A, judged as hᵀJh = J for h = S g S⁻¹; ``(...,)`` bool.

        In the standard frame small eigenvalues of A count as much as large ones. ``tolerance`` is relative to
        1 + ‖h‖², the size of what cancels. For singular A the map must be invertible, too.
        """
        g = checks.square(g, "g", self.form.n).double()
        p, q, zero = self.form.signature
        J = torch.diag(torch.tensor([1.0] * p + [-1.0] * q + [0.0] * zero, dtype=g.dtype, device=g.device))
        h = self._standard.to(g) @ g @ self._standard_inverse.to(g)
        return preserves(h, J, zero, tolerance)

    def sample(
        self, k: int, seed: int | torch.Generator = 0, max_boost: float = 1.0
    ) -> Float[Tensor, "{k} n n"]:
        """``k`` random elements, float64 ``(k, n, n)``, from every connected component.

        In the standard frame g = k₁ b k₂ (the polar form of O(p,q)): k₁, k₂ Haar on O(p) × O(q), and b boosts
        min(p, q) commuting planes by rapidities uniform in [-max_boost, max_boost]. The null directions of a
        singular form get a map k₁ diag(eᵘ) k₂, u as above, and shears with entries uniform in the same range.
        """
        if k < 1:
            raise ValueError(f"k = {k}: ask for at least one element")
        if not (math.isfinite(max_boost) and 0 <= max_boost <= 15):
            raise ValueError(
                f"max_boost = {max_boost}: give a rapidity from 0 to 15 (beyond it, rounding wins)"
            )
        generator = random_generator(seed)
        p, q, zero = self.form.signature
        n = self.form.n

        within = partial(uniform, max_boost, generator)

        def compact() -> Tensor:
            blocks = torch.zeros(k, n, n, dtype=torch.float64)
            for size, start in ((p, 0), (q, p), (zero, p + q)):
                blocks[:, start : start + size, start : start + size] = haar(size, (k,), generator)
            return blocks

        b = boosts(within(k, min(p, q)), p, n)
        null = torch.arange(p + q, n)
        b[:, null, null] = within(k, zero).exp()
        b[:, p + q :, : p + q] = within(k, zero, p + q)
        return self._standard_inverse @ (compact() @ b @ compact()) @ self._standard

    def _require_off_cone(self, q: Tensor, x: Tensor, what: str) -> None:
        scale = (x * x).sum(-1) * self.form.eigenvalues.abs().max()
        null = q.abs() <= NULL_TOLERANCE * scale
        if bool(null.any()):
            where = tuple(int(i) for i in null.nonzero()[0]) if null.ndim else ()
            raise ValueError(
                f"{int(null.sum())} of {null.numel()} {what} lie on the null cone q = 0 (the first at index {where}, "
                f"q = {float(q[where]):.3g}): no group element takes a null vector to a unit reference; leave them out"
            )

    def align(self, x: Any) -> Float[Tensor, "... n n"]:
        """W(x) ∈ O(A) with W(x) x/√|q(x)| = e and W(x)² = I, by one stable reflection (M3).

        Vectors ``(..., n)`` give ``(..., n, n)``, for definite, indefinite and singular A alike; e is
        ``reference(sign q(x))``. Null vectors have no such W and raise.
        """
        x = checks.vectors(x, self.form.n).double()
        A = self._A.to(x)
        q = ((x @ A) * x).sum(-1)
        self._require_off_cone(q, x, "vector(s)")
        unit = x / q.abs().sqrt()[..., None]
        p, minus, _ = self.form.signature
        positive, negative = (self.reference(s if has else -s).to(q) for s, has in ((1, p), (-1, minus)))
        return align_unit(unit, torch.where((q > 0)[..., None], positive, negative), A)

    def frame(self, X: Any) -> tuple[Float[Tensor, "*batch n n"], Float[Tensor, "*batch p n"]]:
        """Indefinite QR of tuples ``(..., p, n)``: g(X) ∈ O(A) and the coordinates g(X) X ``(..., p, n)`` (M5).

        Reflections are repeated, each inside the stabiliser of what is already aligned, until x₁ … x_k,
        k = min(p, rank A), lie in the span of references e₁ … e_k that depend on X only by the signs met on the
        way. Hence the coordinates of hX equal those of X for every h ∈ O(A), as far as the first k references
        are concerned. Tuples with a null remainder on the way have no frame and raise.
        """
        X = checks.vectors(X, self.form.n, "X").double()
        if X.ndim < 2:
            raise ValueError(f"X has shape {tuple(X.shape)}: give tuples (..., p, {self.form.n})")
        A = self._A.to(X)
        p, q, _ = self.form.signature
        references = self._standard_inverse.mT.to(X)  # rows e_1 … e_n with q = +1 (p), -1 (q), 0
        signs = torch.tensor([1.0] * p + [-1.0] * q, dtype=X.dtype, device=X.device)
        free = torch.ones(*X.shape[:-2], p + q, dtype=torch.bool, device=X.device)  # references not used yet
        g = torch.eye(self.form.n, dtype=X.dtype, device=X.device).expand(*X.shape[:-2], -1, -1)
        for i in range(min(X.shape[-2], p + q)):
            y = (g @ X[..., i, :, None])[..., 0]
            # Remove the part along the references already used: the rest lies in their orthogonal complement.
            along = (y @ A @ references[: p + q].mT) * signs * ~free
            rest = y - along @ references[: p + q]
            norm = ((rest @ A) * rest).sum(-1)
            self._require_off_cone(norm, y, f"tuple(s), by their vector {i},")
            usable = free & ((signs > 0) == (norm > 0)[..., None])
            choice = usable.to(torch.int8).argmax(-1)
            e = references[choice]
            g = align_unit(rest / norm.abs().sqrt()[..., None], e, A, inside=True) @ g
            free = free & ~torch.nn.functional.one_hot(choice, p + q).bool()
        return g, X @ g.mT
