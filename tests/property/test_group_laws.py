"""Whatever the form: its algebra generates its group, its elements compose, and alignment aligns."""

import torch
from helpers import SIGNATURES, forms, normal, seeds
from hypothesis import assume, given


@given(forms(), seeds)
def test_elements_form_a_group(form, seed):
    group = form.group()
    g, h = group.sample(2, seed=seed)
    assert group.contains(torch.stack([g, h, g @ h, torch.linalg.inv(g), torch.eye(form.n)])).all()


@given(forms(), seeds)
def test_the_algebra_generates_the_group(form, seed):
    group = form.group()
    basis = group.algebra()
    X = (normal(len(basis), seed=seed)[:, None, None] * basis).sum(0) if len(basis) else torch.zeros(1, 1)
    assert group.contains(torch.linalg.matrix_exp(X))
    # Conjugation by the group maps the algebra to itself.
    g = group.sample(1, seed=seed)[0]
    moved = (g @ X.double() @ torch.linalg.inv(g)).flatten()
    flat = basis.flatten(1)
    assert (moved - flat.T @ (flat @ moved)).norm() <= 1e-10 * (1 + moved.norm())


@given(forms(), seeds)
def test_alignment(form, seed):
    x = normal(6, form.n, seed=seed)
    q = form(x)
    x, q = x[q.abs() > 1e-6], q[q.abs() > 1e-6]
    assume(len(x) > 0)
    group = form.group()
    W = group.align(x)
    unit = x / q.abs().sqrt()[:, None]
    e = torch.stack([group.reference(int(s)) for s in q.sign()])
    size = torch.linalg.matrix_norm(W)
    assert ((W @ unit[..., None])[..., 0] - e).norm(dim=-1).max() <= 1e-10 * (size * unit.norm(dim=-1)).max()
    assert (torch.linalg.matrix_norm(W @ W - torch.eye(form.n)) <= 1e-10 * size**2).all()


@given(forms([s for s in SIGNATURES if sum(s) > 1]), seeds)
def test_distance_is_symmetric_and_invariant(form, seed):
    other = type(form)(form.matrix + 0.1 * torch.diag(normal(form.n, seed=seed)))
    d = form.algebra_distance(other)
    assert abs(d - other.algebra_distance(form)) <= 1e-9
    Q = torch.linalg.qr(normal(form.n, form.n, seed=seed))[
        0
    ]  # an orthogonal change of frame moves both alike
    moved = type(form)(Q @ form.matrix @ Q.T).algebra_distance(Q @ other.matrix @ Q.T)
    assert abs(d - moved) <= 1e-7
