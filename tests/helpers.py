"""Small makers for the tests of the core: forms of every signature, stirred networks, data."""

import torch
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

import gortho
from gortho.reps import as_rep

#: Every signature (p, q, zero) with p ≥ q in up to n dimensions; (q, p) is the same group.
SIGNATURES = [
    (p, q, n - p - q) for n in range(1, 7) for p in range(1, n + 1) for q in range(0, min(p, n - p) + 1)
]
#: The same with p < q too, where the order matters (the gauge).
ORDERED_SIGNATURES = [
    (p, q, n - p - q) for n in range(1, 5) for p in range(n + 1) for q in range(n - p + 1) if p + q
]
NAMES = ("scalar", "vector", "covector", "conjugation", "bilinear", "form")


def buildable(rep, form, points=1):
    """Whether a part of the output has any equivariant value: a singular form offers no A⁻¹."""
    return all(part.terms(form.signature.zero > 0) for part in as_rep(rep).parts)


def principal_angles(form, other):
    """Principal angles between so(A) and so(B) as subspaces of R^{n×n}, ascending (M8)."""
    bases = [one.group().algebra().flatten(1).T.numpy() for one in (form, other)]
    return subspace_angles(*bases)[::-1].copy()


def stir(net, seed=0, size=0.3):
    """Give every weight a random value: a fresh network is zero, and zero is equivariant under anything."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in net.named_parameters():
            if not name.startswith("form."):
                noise = torch.randn(weight.shape, dtype=torch.float64, generator=generator)
                weight.add_((size * noise / max(1, weight.shape[-1]) ** 0.5).to(weight))
    return net


def normal(*shape, seed=0, dtype=torch.float64):
    """Gaussian numbers from a generator of their own."""
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


def null_vectors(form, count, seed=0):
    """Vectors with q(x) = 0 to rounding, for an indefinite or singular form."""
    group, (p, q, zero) = form.group(), form.signature
    z = normal(count, form.n, seed=seed)
    if p and q:
        lengths = z[:, :p].norm(dim=-1, keepdim=True) / z[:, p : p + q].norm(dim=-1, keepdim=True)
        z = torch.cat([z[:, :p], z[:, p : p + q] * lengths, z[:, p + q :]], dim=-1)
    else:
        assert zero, "a definite form has no null vector but 0"
        z[:, : p + q] = 0.0
    return z @ group._standard_inverse.mT


def relative_mse(prediction, target):
    """Mean squared error over the variance of the targets."""
    return float((prediction - target).square().mean() / (target - target.mean(0)).square().mean())


@st.composite
def forms(draw, signatures=SIGNATURES, condition=1e3):
    """Forms of every signature, in a random frame, of condition up to ``condition``."""
    p, q, zero = draw(st.sampled_from(signatures))
    size = draw(st.sampled_from([1.0, 10.0, condition]))
    return gortho.QuadraticForm.random(p, q, zero, condition=min(size, condition), seed=draw(seeds))


seeds = st.integers(0, 2**31 - 1)
