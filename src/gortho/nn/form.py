"""Forms inside networks: fixed, or learnt together with everything else (M2, M7).

Both provide what a network needs: Gram matrices, A x, and the metric from which outputs are assembled.
"""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import orthogonal

from gortho.forms import QuadraticForm, Signature
from gortho.groups import haar, random_generator
from gortho.nn.invariants import Pairing
from gortho.pairings import Metric
from gortho.skew import SkewForm, complex_structure
from gortho.symplectic import SymplecticGroup
from gortho.volume import Volumes


class Known(nn.Module):
    """A known form, quadratic or skew: what `_exact` gives is exact in any precision."""

    #: Buffers that follow from the form, and that saved networks are without.
    derived: tuple[str, ...] = ()
    frame: Tensor
    lower: Tensor
    upper: Tensor

    def __init__(self, form: Any, zero: int):
        super().__init__()
        self.known, self.n, self.rank, self.singular = form, form.n, form.n - zero, zero > 0
        for name, tensor in self._exact().items():
            stored = name not in self.derived
            self.register_buffer(name, tensor.to(torch.get_default_dtype()), persistent=stored)

    def _exact(self) -> dict[str, Tensor]:
        """The buffers in float64; ``upper`` is empty for a singular form."""
        raise NotImplementedError

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        for name, tensor in self._exact().items():  # .double() must not keep float32 rounding
            setattr(self, name, tensor.to(getattr(self, name)))
        return self

    def legs(self, X: Tensor) -> Tensor:
        """The vectors that outputs are made of: those of ``(batch, p, n)``."""
        return X

    def metric(self) -> Metric:
        """The form and its inverse for assembling outputs."""
        return Metric(self.lower, None if self.singular else self.upper)

    def matrix(self) -> Tensor:
        """The gauge-fixed matrix."""
        return self.lower

    def value(self) -> Any:
        """The form as a value."""
        return self.known


class FixedForm(Known):
    """A known form, as a module that is not trained.

    Inner products go through the standard frame S, A = SᵀJS, because x ↦ Sx loses fewer digits than x ↦ Ax when A is
    badly conditioned and x was boosted far along its small directions.
    """

    pairing = Pairing.SYMMETRIC
    derived: tuple[str, ...] = ("raise_",)
    signs: Tensor
    raise_: Tensor

    def __init__(self, form: QuadraticForm):
        super().__init__(form, form.signature.zero)

    def _exact(self) -> dict[str, Tensor]:
        """The buffers in float64; ``upper`` and ``raise_`` are empty for a singular form."""
        form = self.known
        values, Q = torch.linalg.eigh(form.matrix)
        values = torch.where(values.abs() <= form.tolerance * values.abs().max(), 0.0, values)
        metric = Metric.of(form)
        # Of a singular form, what counts as zero is zero here, too.
        lower, upper = (Q * values) @ Q.T, torch.empty(0)
        if metric.upper is not None:
            lower, upper = metric.lower, metric.upper
        frame, raise_ = values.abs().sqrt()[:, None] * Q.T, torch.empty(0)
        if not self.singular:  # S⁻¹J, of size √n
            raise_ = Q / values.abs().sqrt() * values.sign()
            raise_ = raise_ * (self.n**0.5 / torch.linalg.matrix_norm(raise_))
        return {
            "frame": frame,
            "signs": values.sign(),
            "lower": lower,
            "upper": upper,
            "raise_": raise_,
        }

    def gram(self, X: Tensor) -> Tensor:
        """⟨x_i, x_j⟩ for ``(..., p, n)``."""
        Z = X @ self.frame.mT
        if X.ndim == 3 and self.n <= 8:  # quicker than thousands of tiny matrices
            Z = Z.permute(2, 1, 0).contiguous()
            return ((Z * self.signs[:, None, None])[:, :, None] * Z[:, None]).sum(0).permute(2, 0, 1)
        return (Z * self.signs) @ Z.mT

    def lowered(self, X: Tensor) -> Tensor:
        """A x for ``(..., n)``."""
        return ((X @ self.frame.mT) * self.signs) @ self.frame

    def volumes(self, X: Tensor) -> Volumes:
        """Partial volumes of ``(batch, p, n)``, through the standard frame, up to a factor (M15)."""
        return Volumes(X @ self.frame.mT, self.frame.mT, self.raise_)


class FixedHermitian(FixedForm):
    """A known form A with a compatible skew form ω: products ⟨x, y⟩ + ω(x, y), and ix in addition to each x (M17)."""

    pairing = Pairing.BOTH
    derived = ("raise_", "turn", "omega")

    def __init__(self, form: QuadraticForm, skew: SkewForm):
        self.skew_matrix = skew.matrix
        super().__init__(form)

    turn: Tensor
    omega: Tensor

    def _exact(self) -> dict[str, Tensor]:
        values, Q = torch.linalg.eigh(self.known.matrix)
        back = Q / values.abs().sqrt()
        K = complex_structure(self.known.matrix, self.skew_matrix)
        return super()._exact() | {"turn": K, "omega": back.mT @ self.skew_matrix @ back}

    def gram(self, X: Tensor) -> Tensor:
        """⟨x_i, x_j⟩ + ω(x_i, x_j), its symmetric and its skew part."""
        Z = X @ self.frame.mT
        return super().gram(X) + Z @ self.omega @ Z.mT

    def legs(self, X: Tensor) -> Tensor:
        """The vectors and i times the vectors, ``(batch, 2p, n)``."""
        return torch.cat([X, X @ self.turn.mT], -2)


class FixedSkew(Known):
    """A known skew form ω in place of a quadratic one; products go through its standard frame Σ e_i∧f_i (M17)."""

    pairing = Pairing.SKEW

    pairs: Tensor

    def __init__(self, skew: SkewForm):
        super().__init__(skew, skew.zero)

    def _exact(self) -> dict[str, Tensor]:
        group, omega = SymplecticGroup(self.known), self.known.matrix
        upper = torch.empty(0, dtype=torch.float64)
        if not self.singular:
            upper = torch.linalg.inv(omega)
            upper = upper * (self.n**0.5 / torch.linalg.matrix_norm(upper))
        return {"frame": group._standard, "pairs": group._omega, "lower": omega, "upper": upper}

    def gram(self, X: Tensor) -> Tensor:
        """ω(x_i, x_j) for ``(..., p, n)``."""
        Z = X @ self.frame.mT
        return Z @ self.pairs @ Z.mT

    def lowered(self, X: Tensor) -> Tensor:
        """The covectors ω(x, ·) for ``(..., n)``."""
        return X @ self.frame.mT @ self.pairs @ self.frame

    def volumes(self, X: Tensor) -> Volumes:
        """There are no odd outputs."""
        raise NotImplementedError(
            "a skew form does not distinguish left from right: every element has determinant one"
        )


class FixedVectors(nn.Module):
    """Known vectors or matrices; like a known form they are not stored, and regain full precision in float64."""

    def __init__(self, vectors: Tensor):
        super().__init__()
        self.exact = vectors.double()
        self.register_buffer("value", vectors.to(torch.get_default_dtype()), persistent=False)

    value: Tensor

    def _apply(self, fn: Any, recurse: bool = True) -> FixedVectors:
        super()._apply(fn, recurse)
        self.value = self.exact.to(self.value)
        return self


def random_signature(n: int, generator: torch.Generator) -> Signature:
    """A non-singular signature, uniform over those that differ as groups: p = 0 … n//2 of one sign."""
    p = int(torch.randint(0, n // 2 + 1, (), generator=generator))
    return Signature(p, n - p, 0)


class LearnableForm(nn.Module):
    """A form with trainable parameters and fixed scale ‖A‖_F = √n, initialised at random.

    Args:
        n: dimension.
        seed: seed of the start; absolute eigenvalues are uniform in [0.5, 1.5], in a Haar frame.
        signature: signature of the start; by default random over all that differ as groups.
        parametrisation: "symmetric" (the entries of A; the default, because it is simpler and no worse,
            see ``results/parametrisation.md``) or "spectral" (the paper's A = UᵀDU, U orthogonal).
        start: start at this form instead, e.g. at the spectral solution (M6).
        names: names of the coordinates, for printing.

    >>> LearnableForm(3, seed=1).matrix().shape
    torch.Size([3, 3])
    """

    singular = False
    pairing = Pairing.SYMMETRIC

    def __init__(
        self,
        n: int,
        seed: int | torch.Generator = 0,
        signature: tuple[int, ...] | None = None,
        parametrisation: str = "symmetric",
        start: QuadraticForm | None = None,
        names: Any = None,
    ):
        super().__init__()
        if n < 1:
            raise ValueError(f"n = {n}: a form needs at least one dimension")
        self.n, self.rank, self.names = n, n, names
        generator = random_generator(seed)
        p, q, *_ = signature or random_signature(n, generator)
        if p + q != n:
            raise ValueError(
                f"signature ({p}, {q}) in {n} dimensions: a start is not singular, so p + q = {n}"
            )
        U = haar(n, (), generator)
        sizes = 0.5 + torch.rand(n, dtype=torch.float64, generator=generator)
        values = sizes * torch.tensor([1.0] * p + [-1.0] * q, dtype=torch.float64)
        if start is not None:
            if start.n != n:
                raise ValueError(f"the start is a form in {start.n} dimensions, not {n}: give one in {n}")
            values, Q = torch.linalg.eigh(start.matrix)
            U = Q.T
        self.parametrisation = parametrisation
        dtype = torch.get_default_dtype()
        if parametrisation == "symmetric":
            self.entries = nn.Parameter((U.T * values @ U).to(dtype))
        elif parametrisation == "spectral":
            self.values = nn.Parameter(values.to(dtype))
            # The parametrisation reaches rotations only, so the start carries the sign of the determinant.
            linear = nn.Linear(n, n, bias=False, dtype=dtype)
            self.rotation = orthogonal(linear, orthogonal_map="cayley")
            self.rotation.weight = U.to(dtype)
        else:
            raise ValueError(f"parametrisation {parametrisation!r}: choose 'symmetric' or 'spectral'")

    def matrix(self) -> Tensor:
        """A with ‖A‖_F = √n."""
        if self.parametrisation == "symmetric":
            A = self.entries + self.entries.mT
        else:
            U: Any = self.rotation.weight
            A = U.mT * self.values @ U
        return A * (self.n**0.5 / torch.linalg.matrix_norm(A, keepdim=True))

    def gram(self, X: Tensor) -> Tensor:
        """⟨x_i, x_j⟩ for ``(..., p, n)``."""
        return X @ self.matrix() @ X.mT

    def legs(self, X: Tensor) -> Tensor:
        """The vectors that outputs are made of."""
        return X

    def lowered(self, X: Tensor) -> Tensor:
        """A x for ``(..., n)``."""
        return X @ self.matrix()

    def metric(self) -> Metric:
        """A, and the adjugate of A scaled to ‖·‖_F = √n instead of A⁻¹.

        The adjugate det(A) A⁻¹ differs from A⁻¹ by a factor, which the coefficients absorb, and stays finite
        where an eigenvalue changes its sign: no wall between signatures (M7). On the wall itself, where the
        determinant is zero, the inverse is evaluated a step of √ε away (ε the rounding of the dtype).
        """
        A = self.matrix()
        beside = torch.where(torch.linalg.det(A.detach()) == 0, torch.finfo(A.dtype).eps ** 0.5, 0.0)
        regular = A + beside * torch.eye(self.n, dtype=A.dtype, device=A.device)
        inverse, _ = torch.linalg.inv_ex(regular)
        sign = torch.linalg.det(regular.detach()).sign()
        scale = sign * self.n**0.5 / torch.linalg.matrix_norm(inverse)
        return Metric(A, inverse * scale)

    def volumes(self, X: Tensor) -> Volumes:
        """Partial volumes of ``(batch, p, n)``, with the adjugate for A⁻¹ (M15)."""
        upper = self.metric().upper
        assert upper is not None
        return Volumes(X, torch.eye(self.n).to(X), upper)

    def value(self) -> QuadraticForm:
        """The current form, as a value."""
        return QuadraticForm(self.matrix().detach(), self.names)


#: What networks take for a form.
FormModule = FixedForm | FixedSkew | LearnableForm


def as_form_module(form: Any) -> FormModule:
    """Read a form for a network: a `QuadraticForm` or matrix is fixed, an int n means learn one in R^n."""
    if isinstance(form, FormModule):
        return form
    if isinstance(form, SkewForm):
        return FixedSkew(form)
    if isinstance(form, int):
        return LearnableForm(form)
    return FixedForm(form if isinstance(form, QuadraticForm) else QuadraticForm(form))
