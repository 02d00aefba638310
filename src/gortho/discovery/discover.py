"""One call from samples to a verdict.

The way: check the data, split it, fit a smooth surrogate and solve for spectral starts (M6), search jointly from many
starts (M7), refit on bootstrap resamples, freeze the form and fit the final predictor, compare it with models that
know no form, judge. The held-out part is used for the last two steps only.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gortho.samples import check_samples
from gortho.discovery import peers
from gortho.discovery.evidence import (
    attach_errors,
    certificate,
    compare,
    measure_spread,
    without_noise_eigenvalues,
)
from gortho.discovery.inputs import as_targets, as_tuples, hopeless, split_scalars
from gortho.discovery.joint import Interrupted, Restart, Settings, refit, search
from gortho.discovery.predictor import final_predictor, refit_on_all
from gortho.discovery.problem import Clock, Problem, as_data, single
from gortho.discovery.replicas import Data
from gortho.discovery.result import Discovery
from gortho.discovery.spectral import SpectralForm, spectral_form
from gortho.discovery.verdict import AGREEMENT, NEAR_BEST, Verdict, confidence, few_samples, judge
from gortho.forms import QuadraticForm
from gortho.reps import DirectSum, Rep

#: More samples than this are thinned at random, with a notice, unless the caller asks for more.
MAX_SAMPLES = 50_000
#: More samples than this add time, not knowledge, to the search for the form (the predictor sees all).
SEARCH_SAMPLES = 10_000
#: Second moments of x farther from isotropic than this are whitened for the search.
WHITEN_ABOVE = 2.0

#: Called with the stage, the share of the whole work done, and a line on the leading form.
Watch = Callable[[str, float, str], None]
_STAGES = {"search": (0.02, 0.35), "refits": (0.35, 0.65), "predictor": (0.65, 0.85), "peers": (0.85, 1.0)}
_STAGES_THEN_MEMBERS = {name: (a / 2, b / 2) for name, (a, b) in _STAGES.items()} | {"members": (0.5, 1.0)}


def whitener(X: Tensor) -> Tensor:
    """W with x' = Wx of isotropic second moments; the identity when they are nearly so already.

    Only a change of basis for the search: a form A' found there is WᵀA'W in the given coordinates, exactly.
    """
    flat = X.reshape(-1, X.shape[-1]).double()
    values, Q = torch.linalg.eigh(flat.T @ flat / len(flat))
    if float(values[-1] / values[0].clamp_min(1e-300)) <= WHITEN_ABOVE:
        return torch.eye(X.shape[-1], dtype=torch.float64)
    return Q / values.sqrt() @ Q.T


def _transformed(data: Data, W: Tensor, rep: Rep) -> list[Tensor | None]:
    x, y, *rest = data
    assert x is not None and y is not None
    g = W.expand(len(y), *W.shape) if isinstance(rep, DirectSum) else W
    return [x @ W.T, rep.act(g, y), *rest]


def discover(
    X: Any,
    y: Any,
    output: str | Rep = "scalar",
    scalars: Any = None,
    seed: int = 0,
    *,
    set_like: bool = False,
    names: Any = None,
    settings: Settings | None = None,
    time_budget: float | None = None,
    max_samples: int | None = None,
    watch: Watch | None = None,
) -> Discovery:
    """Is there a quadratic form whose group the data respects? Which one, how sure, and a predictor that respects it.

    Args:
        X: vectors ``(N, n)`` or tuples of vectors ``(N, p, n)``.
        y: targets, shaped as the output needs: ``(N,)`` scalar, ``(N, n)`` vector or covector, ``(N, n, n)``
            conjugation, bilinear or form.
        output: how the targets transform: a name, a sum of names, or a rep object.
        scalars: quantities no group touches (masses, charges), per point ``(N, p)``, ``(N, p, s)`` or per sample.
        seed: the same seed gives the same answer on the same machine.
        set_like: the points of a sample have no order.
        names: names of the n coordinates.
        settings: sizes of the search.
        time_budget: seconds; the search is made smaller to fit (roughly), which may cost certainty.
        max_samples: more samples than this (50,000 by default) are thinned at random, with a notice.
        watch: called with (stage, share done, leading form) while it works.

    Ctrl-C ends the search with the best so far, judged UNDERDETERMINED.

    >>> import gortho, torch
    >>> x = torch.randn(300, 2, dtype=torch.float64)
    >>> small = gortho.Settings(steps=150, refit_steps=100, refits=4)
    >>> found = gortho.discover(x, x[:, 0] ** 2 - x[:, 1] ** 2, settings=small)
    >>> found.verdict.name, found.group_name
    ('FOUND', 'O(1,1)')
    """
    started = time.perf_counter()
    clock = Clock(settings or Settings(), time_budget)
    watch = watch or (lambda stage, share, line: None)
    raw = as_tuples(X)
    points = raw.shape[1] if raw.ndim == 3 else 1
    given = split_scalars(scalars, points)
    names = names if names is not None else list(getattr(X, "columns", [])) if raw.ndim == 2 else None
    x, targets, point, sample, notices = check_samples(
        X, y, *given, max_samples or MAX_SAMPLES, seed, names=names or None
    )
    x = x[:, None, :] if x.ndim == 2 else x
    n = x.shape[-1]
    names = tuple(names) if names else tuple(f"x{i}" for i in range(n))
    targets, rep = as_targets(targets, output, n)
    found = Discovery(Verdict.UNDERDETERMINED, "", "", 0.0, repr(rep), names, notices=list(notices))
    found.facts = _facts(seed, x, rep)
    if output == "scalar" and targets.ndim == 2 and targets.shape[1] == n:
        found.notices.append(f"y has {n} columns, as x has: did you mean output='vector'?")
    refusal = hopeless(x, targets, names)
    if refusal:
        found.reason, found.advice = refusal
        return found

    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    sizes = [min(5_000, max(4, len(x) // 6)), min(3_000, max(4, len(x) // 8))]
    test, validation, train = (
        as_data((x, targets, point, sample), rows) for rows in order.split([*sizes, len(x) - sum(sizes)])
    )
    options = {
        "points": x.shape[1],
        "point_scalars": 0 if point is None else point.shape[-1],
        "sample_scalars": 0 if sample is None else sample.shape[-1],
        "set_like": set_like,
    }
    with one_thread():
        _discover(found, Problem(train, validation, test, rep, options, clock, seed), watch)
    e = found.evidence
    if e is not None and e.few_rule:
        held_out = order[: e.held_out].numpy()
        sizes = np.linalg.norm(targets[held_out].reshape(e.held_out, -1), axis=1)
        rows = held_out[e.worst].tolist() if len(x) == len(raw) else None  # dropped rows shift the numbers
        found.notices.append(few_samples(e, sizes, rows))
    found.facts["seconds"] = f"{time.perf_counter() - started:.1f}"
    return found


@contextmanager
def one_thread() -> Iterator[None]:
    """Small kernels gain nothing from a second thread, and lose much time when something else runs beside."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _discover(
    found: Discovery,
    problem: Problem,
    watch: Watch,
) -> None:
    """Fill in the discovery, stage by stage; an interruption keeps what there is."""

    def stage(name: str) -> Callable[[float, str], None]:
        first, last = (_STAGES if problem.clock.settings.members == 1 else _STAGES_THEN_MEMBERS)[name]
        return lambda share, line: watch(name, first + share * (last - first), line)

    train, rep, seed = problem.train, problem.rep, problem.seed
    options = {**problem.options, "output": rep}
    assert train[0] is not None
    W = whitener(train[0])
    few = [None if t is None else t[:SEARCH_SAMPLES] for t in train]
    white = [single(_transformed(part, W, rep)) for part in (few, problem.validation)]
    white[1] = [None if t is None else t[:1_000] for t in white[1]]

    def back(form: QuadraticForm) -> QuadraticForm:
        return QuadraticForm(W.T @ form.matrix @ W, found.names)

    spectral, extra = _spectral_starts(white[0], white[1], rep)
    interrupted = False
    try:
        settings = problem.clock.fit(white, options, seed)
        restarts = search(
            white[0],
            white[1],
            options,
            extra=extra,
            settings=settings,
            seed=seed,
            progress=stage("search"),
            shown=back,
        )
    except Interrupted as stop:
        restarts, interrupted = stop.restarts, True
    near, agreeing = agreement(restarts)
    matrices = None
    if not interrupted:
        try:
            winners = [r.form for r in near]
            both = [None if a is None or b is None else torch.cat([a, b]) for a, b in zip(white[0], white[1])]
            matrices = refit(
                both,
                options,
                winners,
                settings=settings,
                seed=seed,
                progress=stage("refits"),
                shown=back,
            )
        except KeyboardInterrupt:
            interrupted = True
    found.restarts = [replace(r, form=back(r.form)) for r in restarts]
    center = restarts[0].form if matrices is None else QuadraticForm(matrices.mean(0))
    candidate, zero = without_noise_eigenvalues(center, matrices)
    candidate = back(candidate)
    try:
        candidate, history = final_predictor(found, candidate, problem, stage("predictor"))
        interrupted |= history.ended.startswith("interrupted")
        evidence = compare(found, candidate, problem, stage("peers"))
        if problem.clock.settings.members > 1 and "predictor" not in found.facts:
            found.network = refit_on_all(found, candidate, problem, stage("members"))
            found.certificate = certificate(found.network, candidate, problem)
    except KeyboardInterrupt:
        interrupted, evidence = True, None
    attach_errors(found, candidate, matrices, W)
    if evidence is not None:
        evidence.restarts, evidence.near_best, evidence.agreeing = len(restarts), len(near), agreeing
        evidence.zero_directions = zero
        if spectral is not None:
            evidence.spectral_gap, evidence.spectral_residual = spectral.gap, spectral.residual
        if matrices is not None:
            measure_spread(evidence, candidate, matrices, W, found)
        found.evidence = evidence
        found.verdict, found.reason, found.advice = judge(evidence, candidate.group_name)
        found.confidence = confidence(evidence) if found.verdict is Verdict.FOUND else 0.0
    if interrupted:
        found.verdict, found.confidence = Verdict.UNDERDETERMINED, 0.0
        found.reason = (
            "The search was interrupted: this is the best form so far, and the evidence is not complete."
        )
        found.advice = (
            "Run it again and let it finish; --time-budget SECONDS ends by itself (Python: time_budget)."
        )


def _spectral_starts(
    train: Data, validation: Data, rep: Rep
) -> tuple[SpectralForm | None, list[tuple[str, QuadraticForm]]]:
    """A smooth surrogate, and the form that its Jacobians respect best, as one more start (M6)."""
    x, y, *scalars = train
    assert x is not None and y is not None and validation[1] is not None
    kernel = peers.KernelRidge.fit(train, validation, y, validation[1])
    rest = [s[:300].double().flatten(1) for s in scalars if s is not None]

    def surrogate(points: Tensor) -> Tensor:
        return kernel(torch.cat([points.flatten(1), *rest], dim=1))

    try:
        solution = spectral_form(surrogate, x[:300].double(), rep)
    except ValueError:  # a constant surrogate has no Jacobian to speak of
        return None, []
    return solution, [("spectral", solution.form)]


def agreement(restarts: list[Restart]) -> tuple[list[Restart], int]:
    """The survivors about as good as the best, and how many of these end at its form."""
    last = max(r.steps[-1] for r in restarts)
    best = restarts[0]
    near = [r for r in restarts if r.steps[-1] == last and r.validation <= NEAR_BEST * best.validation + 1e-9]
    return near, sum(r.form.algebra_distance(best.form) < AGREEMENT for r in near)


def _facts(seed: int, x: np.ndarray, rep: Rep) -> dict[str, str]:
    import gortho

    return {
        "samples": f"{len(x)}",
        "vectors in a sample": f"{x.shape[1]}",
        "dimension": f"{x.shape[2]}",
        "output": repr(rep),
        "seed": f"{seed}",
        "gortho": gortho.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
