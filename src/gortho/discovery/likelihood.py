"""The form by maximum likelihood, as of classes: a short model of the invariants, fitted together with the form.

Each label carries little information, so a model with few unknowns determines the form better than the large families
of the search, which only has to come close. This starts from the end points of the search. The loss may be that of any
objective whose outputs are numbers, such as logits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from gortho.discovery.refits import align_signs
from gortho.discovery.search import Restart, Search
from gortho.discovery.spectral import entries_of, of_entries
from gortho.objectives import Objective
from gortho.objectives.objective import weighted_mean
from gortho.samples.frame import unit_form
from gortho.samples.values import Samples

#: Penalty of the squares of the model's weights.
PENALTY = 1e-4
#: Steps of the quasi-Newton method, at most.
STEPS = 200
#: Bumps along each invariant, at most: a class may be a shell, which no short polynomial follows …
BUMPS = 10
#: … and the labels that there must be for each.
LABELS_FOR_EACH = 500
#: Bumps lie between these quantiles of an invariant.
WITHIN = (0.02, 0.98)
#: Two ends are equally likely if their log-likelihoods differ by less than this.
EQUALLY_LIKELY = 2.0


@dataclass(frozen=True)
class ShortModel:
    """Samples, in their frame, for fits of form and weights together."""

    samples: Samples
    objective: Objective
    units: Tensor
    centres: Tensor  # of the bumps along each invariant ``(bumps, invariants)``
    width: Tensor

    @classmethod
    def of(cls, samples: Samples, objective: Objective, A: Tensor) -> ShortModel:
        """Units of the invariants and places of the bumps from a form that is near."""
        u = _invariants(A, samples)
        units = u.abs().median(0).values
        units = torch.where(units > 0, units, 1.0)
        low, high = np.quantile(torch.asinh(u / units).numpy(), WITHIN, axis=0)
        bumps = min(BUMPS, len(u) // (LABELS_FOR_EACH * u.shape[1]))
        width = torch.tensor(high - low) / max(bumps - 1, 1)
        centres = torch.tensor(low) + width * torch.arange(bumps if bumps > 2 else 0)[:, None]
        return cls(samples, objective, units, centres, torch.where(width > 0, width, 1.0))

    def features(self, A: Tensor) -> Tensor:
        """Invariants u, e = asinh u, products of two e, bumps of e, and scalars with these ``(N, columns)``."""
        s = self.samples
        u = _invariants(A, s) / self.units
        given = [t.flatten(1) for t in s.scalars if t is not None]
        rest = [(t - t.mean(0)) / t.std(0).clamp_min(1e-30) for t in given]
        e = torch.cat([torch.asinh(u), *rest], 1)
        i, j = torch.triu_indices(e.shape[1], e.shape[1])
        bumps = torch.exp(-((torch.asinh(u)[:, None] - self.centres) / self.width).square() / 2).flatten(1)
        return torch.cat([torch.ones(len(u), 1, dtype=u.dtype), u, e, e[:, i] * e[:, j], bumps], 1)

    def fit(self, A: Tensor) -> tuple[Tensor, float]:
        """The most likely form from A on, ‖A‖ = √n, and its mean loss."""
        n, y, gauge = self.samples.n, self.samples.y, self.objective.gauge
        count, columns, outputs = n * (n + 1) // 2, self.features(A).shape[1], y[0].numel() - gauge

        def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
            v = torch.tensor(values, requires_grad=True)
            B = of_entries(v[:count], n)
            size = torch.linalg.matrix_norm(B) / n**0.5
            c = v[count:].reshape(columns, outputs)
            output = torch.nn.functional.pad(self.features(B / size) @ c, (gauge, 0)).reshape(y.shape)
            data = weighted_mean(self.objective.each(output, y), self.samples.weights)
            # The size is a gauge (M2).
            total = data + PENALTY * c.square().mean() + PENALTY * (size - 1).square()
            (slope,) = torch.autograd.grad(total, v)
            return float(total.detach()), slope.numpy()

        start = np.concatenate([entries_of(A).numpy(), np.zeros(columns * outputs)])
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
        return unit_form(of_entries(torch.tensor(found.x[:count]), n)), float(found.fun)


def _invariants(A: Tensor, samples: Samples) -> Tensor:
    """All inner products; of a set, their means over points and pairs, and the square of the sum."""
    x = samples.x.double()
    if samples.mask is not None:
        x = torch.where(samples.mask[..., None], x, 0.0)
    gram, k = x @ A @ x.mT, samples.points
    if not samples.set_like:
        i, j = torch.triu_indices(k, k)
        return gram[:, i, j]
    own = gram.diagonal(dim1=1, dim2=2)
    whole = gram.sum((1, 2))
    return torch.stack([own.mean(1), torch.asinh(own).mean(1), whole], 1)


def most_likely(samples: Samples, found: Search) -> Search:
    """The ends of the search brought to the most likely forms near them; those that are as likely as the best."""
    ends = []
    for r in found.restarts:
        A, loss = ShortModel.of(samples, found.objective, r.A).fit(r.A)
        ends.append(Restart(r.start, A, loss))
    ends.sort(key=lambda r: r.criterion)
    limit = ends[0].criterion + EQUALLY_LIKELY / len(samples)
    return replace(found, A=ends[0].A, restarts=tuple(r for r in ends if r.criterion <= limit))


def likelihood_refits(
    samples: Samples, found: Search, count: int, seed: int, progress: Callable[[float, Tensor], None]
) -> Tensor:
    """The same fit to samples with random weights (the Bayesian bootstrap), ``(1 + count, n, n)``."""
    model, forms = ShortModel.of(samples, found.objective, found.A), [found.A]
    for r in range(count):
        generator = torch.Generator().manual_seed(seed * 104_729 + r)
        forms.append(replace(model, samples=samples.bootstrapped(generator)).fit(found.A)[0])
        progress((r + 1) / count, found.A)
    return align_signs(torch.stack(forms), found.A)
