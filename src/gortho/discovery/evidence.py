"""Gathering the evidence: bootstrap errors of the form, and the comparison with models that know no form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gortho.discovery import peers
from gortho.discovery.problem import Problem
from gortho.discovery.result import Discovery, Peer
from gortho.discovery.verdict import ZERO_SHARE, Evidence
from gortho.forms import QuadraticForm
from gortho.nn.exact import EquivariantNet
from gortho.nn.form import FixedForm
from gortho.nn.plain import PlainNet
from gortho.reps import Tensor as TensorRep
from gortho.testing import equivariance_error
from gortho.training import predict

#: Largest rapidities at which the certificate of equivariance is measured.
BOOSTS = (0.25, 0.5, 1.0, 2.0, 3.0)


def _eigenvalue_errors(form: QuadraticForm, matrices: Tensor) -> Tensor:
    """Bootstrap errors of the eigenvalues by first-order perturbation: δλ_i = v_iᵀ δA v_i."""
    _, Q = torch.linalg.eigh(form.matrix)
    sign = (matrices.mean(0) * form.matrix).sum().sign()
    return torch.einsum("ai,rab,bi->ri", Q, sign * matrices, Q).std(0)


def without_noise_eigenvalues(form: QuadraticForm, matrices: Tensor | None) -> tuple[QuadraticForm, int]:
    """Set eigenvalues to zero that are small and not told from zero by the refits: the form is then singular."""
    if matrices is None:
        return form, 0
    values, Q = torch.linalg.eigh(form.matrix)
    errors = _eigenvalue_errors(form, matrices)
    is_zero = (values.abs() < ZERO_SHARE * values.abs().max()) & (values.abs() < 3 * errors + 1e-3)
    if not bool(is_zero.any()) or bool(is_zero.all()):
        return form, 0
    return QuadraticForm(Q * torch.where(is_zero, 0.0, values) @ Q.T, form.names), int(is_zero.sum())


def attach_errors(found: Discovery, candidate: QuadraticForm, matrices: Tensor | None, W: Tensor) -> None:
    """Attach the candidate and the bootstrap errors of its entries and eigenvalues, in the given coordinates."""
    found.candidate = candidate
    if matrices is None:
        return
    forms = _in_given_coordinates(matrices, W, candidate)
    found.refits = len(forms)
    found.entry_errors = forms.std(0).numpy()
    found.eigenvalue_errors = _eigenvalue_errors(candidate, forms).numpy()


def _in_given_coordinates(matrices: Tensor, W: Tensor, candidate: QuadraticForm) -> Tensor:
    forms = W.T @ matrices @ W
    forms = forms * (candidate.n**0.5 / torch.linalg.matrix_norm(forms, keepdim=True))
    return forms * (forms * candidate.matrix).sum((1, 2), keepdim=True).sign()


def _with_null(A: Tensor, zero: int) -> QuadraticForm:
    """The form of A with its ``zero`` smallest eigenvalues set to zero."""
    values, Q = torch.linalg.eigh(A)
    small = values.abs().argsort()[:zero]
    return QuadraticForm(Q * values.index_fill(0, small, 0.0) @ Q.T)


def measure_spread(
    e: Evidence, candidate: QuadraticForm, matrices: Tensor, W: Tensor, found: Discovery
) -> None:
    """How far the refits are from the candidate, all with as many null directions as it has."""
    forms = [_with_null(A, e.zero_directions) for A in _in_given_coordinates(matrices, W, candidate)]
    e.refit_distances = [f.algebra_distance(candidate) for f in forms]
    e.signature_votes = float(np.mean([f.signature == candidate.signature for f in forms]))
    assert found.eigenvalue_errors is not None
    values = candidate.eigenvalues.abs().numpy()
    seen = values > 0.5 * ZERO_SHARE * values.max()
    e.weakest_eigenvalue = float((values[seen] / np.maximum(found.eigenvalue_errors[seen], 1e-12)).min())


def certificate(net: EquivariantNet, candidate: QuadraticForm, problem: Problem) -> dict[float, float]:
    """Relative equivariance error by largest boost, on held-out samples, in float64."""
    x, _, *scalars = (None if t is None else t[:64] for t in problem.held_out)
    options: dict[str, Any] = {"samples": 4, "arguments": tuple(scalars)}
    return {
        boost: equivariance_error(net, candidate, "vector", problem.rep, x, max_boost=boost, **options)
        for boost in BOOSTS
    }


def compare(
    found: Discovery,
    candidate: QuadraticForm,
    problem: Problem,
    progress: Callable[[float, str], None],
) -> Evidence:
    """Compare with models that know no form, on held-out samples; look for structure in what is left over."""
    net, rep, seed = found.network, problem.rep, problem.seed
    train, validation, test = problem.train, problem.validation, problem.held_out
    assert net is not None and train[1] is not None and validation[1] is not None and test[1] is not None
    variance = float((test[1] - train[1].mean(0)).square().mean())
    own = predict(net, test[0], *test[2:])
    errors = peers.squared_errors(own, test[1])
    scalar = rep == TensorRep(0, 0)

    candidates: list[tuple[str, Tensor, float, int]] = []  # name, predictions, validation error, size
    kernel = peers.KernelRidge.fit(train, validation, train[1], validation[1])
    candidates.append(("kernel ridge", kernel.predict(test), kernel.validation, kernel.parameters))
    progress(0.2, str(candidate))
    plain = PlainNet(
        FixedForm(QuadraticForm.euclidean(candidate.n)),
        output=rep,
        width=128,
        depth=2,
        seed=seed,
        **{**problem.options, "set_like": False},
    )
    problem.fit(plain, lr=3e-3)
    progress(0.7, str(candidate))
    at_validation = float((predict(plain, validation[0], *validation[2:]) - validation[1]).square().mean())
    count = sum(p.numel() for p in plain.parameters())
    candidates.append(("plain MLP", predict(plain, test[0], *test[2:]).double(), at_validation, count))
    if scalar:
        trees = peers.boosted_trees(train, train[1], seed)
        score = float((trees(validation) - validation[1]).square().mean())
        candidates.append(("boosted trees", trees(test), score, 0))
    # Chosen on validation, never on held-out data.
    name, free, _, size = min(candidates, key=lambda c: c[2])
    free_errors = peers.squared_errors(free, test[1])

    residual = [part[1].double() - predict(net, part[0], *part[2:]) for part in (train, validation, test)]  # type: ignore[union-attr]
    rest = [peers.KernelRidge.fit(train, validation, residual[0], residual[1]).predict(test)]
    if scalar:
        rest.append(peers.boosted_trees(train, residual[0], seed)(test))
    corrected = [peers.squared_errors(r, residual[2]) for r in rest]
    progress(0.9, str(candidate))

    own_size = sum(p.numel() for p in net.parameters())
    own_name = f"equivariant, {candidate.group_name}"
    found.peers = [
        Peer(
            own_name,
            float(errors.mean()),
            float(errors.mean()) / variance,
            own_size,
            "respects the form exactly",
        ),
        Peer(
            f"unconstrained ({name})",
            float(free_errors.mean()),
            float(free_errors.mean()) / variance,
            size,
            "best of its kind on validation data",
        ),
    ]
    found.certificate, found.free_certificate = (certificate(m, candidate, problem) for m in (net, plain))
    pick = slice(0, max(1, 2_000 * len(test[1]) // test[1].numel()))
    found.held_out = (test[1][pick].flatten().numpy(), own[pick].flatten().numpy())
    worst = np.argsort(errors)[::-1][: -(-len(errors) // 100)]

    def judged(rows: Any) -> dict[str, Any]:
        """What the verdict asks of these samples."""
        own, free = errors[rows], free_errors[rows]
        better = min((c[rows] for c in corrected), key=np.mean)
        spread = float((test[1][rows] - train[1].mean(0)).square().mean())  # type: ignore[index, union-attr]
        return {
            "unexplained": float(own.mean()) / spread,
            "free_unexplained": float(free.mean()) / spread,
            "free_p": peers.paired_p(free, own),
            "structure_gain": float(1 - better.mean() / max(own.mean(), 1e-300)),
            "structure_p": peers.paired_p(better, own),
        }

    return Evidence(
        samples=len(train[0]),  # type: ignore[arg-type]
        **judged(slice(None)),
        restarts=0,
        near_best=0,
        agreeing=0,
        held_out=len(errors),
        worst=worst.tolist(),
        worst_share=float(errors[worst].sum() / max(errors.sum(), 1e-300)),
        others=judged(np.setdiff1d(np.arange(len(errors)), worst)),
    )
