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

from gortho.data import DataError, check_samples
from gortho.discovery import peers
from gortho.discovery.joint import Interrupted, Restart, Settings, refit, search
from gortho.discovery.replicas import Data
from gortho.discovery.result import Discovery, Peer, build_network
from gortho.discovery.spectral import SpectralForm, spectral_form
from gortho.discovery.verdict import AGREEMENT, NEAR_BEST, ZERO_SHARE, Evidence, Verdict, confidence, judge
from gortho.forms import QuadraticForm
from gortho.nn.form import FixedForm, LearnableForm
from gortho.nn.plain import PlainNet
from gortho.reps import DirectSum, Rep, as_rep
from gortho.reps import Tensor as TensorRep
from gortho.testing import equivariance_error
from gortho.training import History, evaluate, fit, predict, scaled_mse, second_order

#: Fewer samples than this cannot be split into parts that mean anything.
MIN_SAMPLES = 20
#: Components of x whose sizes differ by more than this leave no digits for the form: choose other units.
MAX_UNITS_RATIO = 1e4
#: More samples than this add time, not knowledge, to the search for the form (the predictor sees all).
SEARCH_SAMPLES = 10_000
#: Second moments of x farther from isotropic than this are whitened for the search.
WHITEN_ABOVE = 2.0
BOOSTS = (0.25, 0.5, 1.0, 2.0, 3.0)

#: Called with the stage, the share of the whole work done, and a line on the leading form.
Watch = Callable[[str, float, str], None]
_STAGES = {"search": (0.02, 0.35), "refits": (0.35, 0.65), "predictor": (0.65, 0.85), "peers": (0.85, 1.0)}


def as_tuples(X: Any) -> np.ndarray | Tensor:
    """Inputs as handed in, as a float64 array or tensor."""
    if isinstance(X, Tensor):
        return X.detach().double()
    array = np.asarray(X)
    return array.astype(np.float64) if array.dtype.kind in "fiu" else array


def split_scalars(scalars: Any, points: int) -> tuple[Any, Any]:
    """Tell per-point from per-sample scalars: ``(N, p)`` and ``(N, p, s)`` with p points belong to the points.

    A dictionary {"point": …, "sample": …} says it explicitly and may hold both.
    """
    if scalars is None:
        return None, None
    if isinstance(scalars, dict):
        unknown = set(scalars) - {"point", "sample"}
        if unknown:
            raise DataError(f"scalars has keys {sorted(unknown)}: use 'point' and 'sample'")
        point, sample = scalars.get("point"), scalars.get("sample")
    else:
        array = np.asarray(scalars.detach() if isinstance(scalars, Tensor) else scalars)
        per_point = array.ndim == 3 or (array.ndim == 2 and points > 1 and array.shape[1] == points)
        point, sample = (array, None) if per_point else (None, array)
    point = None if point is None else np.asarray(point, dtype=np.float64)
    sample = None if sample is None else np.asarray(sample, dtype=np.float64)
    if point is not None and point.ndim == 2:
        point = point[:, :, None]
    if sample is not None and sample.ndim == 1:
        sample = sample[:, None]
    return point, sample


def as_targets(y: np.ndarray, output: str | Rep, n: int) -> tuple[np.ndarray, Rep]:
    """Targets in the shape of their rep; several scalar columns make a sum of scalars."""
    rep = as_rep(output)
    if rep == TensorRep(0, 0) and y.ndim == 2:
        if y.shape[1] == 1:
            return y[:, 0], rep
        return y, DirectSum((TensorRep(0, 0),) * y.shape[1])
    expected = (len(y), *rep.shape(n))
    if y.shape != expected and y.size == np.prod(expected):
        return y.reshape(expected), rep
    if y.shape != expected:
        raise DataError(
            f"y has shape {y.shape}, but {rep} outputs for {len(y)} samples in {n} dimensions have shape {expected}: "
            "choose the output that fits, or reshape y"
        )
    return y, rep


def _as_data(parts: tuple, rows: Tensor) -> list[Tensor | None]:
    return [None if part is None else torch.as_tensor(part)[rows] for part in parts]


def _single(data: Data) -> list[Tensor | None]:
    return [None if t is None else t.float() for t in data]


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
    clock = _Clock(settings or Settings(), time_budget)
    watch = watch or (lambda stage, share, line: None)
    raw = as_tuples(X)
    points = raw.shape[1] if raw.ndim == 3 else 1
    given = split_scalars(scalars, points)
    names = names if names is not None else list(getattr(X, "columns", [])) if raw.ndim == 2 else None
    x, targets, point, sample, notices = check_samples(X, y, *given, max_samples, seed, names=names or None)
    x = x[:, None, :] if x.ndim == 2 else x
    n = x.shape[-1]
    names = tuple(names) if names else tuple(f"x{i}" for i in range(n))
    targets, rep = as_targets(targets, output, n)
    found = Discovery(Verdict.UNDERDETERMINED, "", "", 0.0, repr(rep), names, notices=list(notices))
    found.facts = _facts(seed, x, rep)
    refusal = hopeless(x, targets, names)
    if refusal:
        found.reason, found.advice = refusal
        return found

    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    sizes = [min(5_000, max(4, len(x) // 6)), min(3_000, max(4, len(x) // 8))]
    test, validation, train = (
        _as_data((x, targets, point, sample), rows) for rows in order.split([*sizes, len(x) - sum(sizes)])
    )
    options = {
        "points": x.shape[1],
        "point_scalars": 0 if point is None else point.shape[-1],
        "sample_scalars": 0 if sample is None else sample.shape[-1],
        "set_like": set_like,
    }
    with one_thread():
        _discover(found, train, validation, test, rep, options, clock, seed, watch)
    found.facts["seconds"] = f"{time.perf_counter() - started:.1f}"
    return found


@contextmanager
def one_thread() -> Iterator[None]:
    """Small kernels gain nothing from a second thread, and lose a factor of ten when something else runs beside."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _discover(
    found: Discovery,
    train: Data,
    validation: Data,
    test: Data,
    rep: Rep,
    options: dict[str, Any],
    clock: _Clock,
    seed: int,
    watch: Watch,
) -> None:
    """Fill in the discovery, stage by stage; an interruption keeps what there is."""

    def stage(name: str) -> Callable[[float, str], None]:
        first, last = _STAGES[name]
        return lambda share, line: watch(name, first + share * (last - first), line)

    assert train[0] is not None and train[1] is not None and test[1] is not None
    W = whitener(train[0])
    few = [None if t is None else t[:SEARCH_SAMPLES] for t in train]
    white = [_single(_transformed(part, W, rep)) for part in (few, validation)]
    white[1] = [None if t is None else t[:1_000] for t in white[1]]

    def back(form: QuadraticForm) -> QuadraticForm:
        return QuadraticForm(W.T @ form.matrix @ W, found.names)

    spectral, extra = _spectral_starts(white[0], white[1], rep)
    interrupted = False
    try:
        settings = clock.fit(white, {**options, "output": rep}, seed)
        restarts = search(
            white[0],
            white[1],
            {**options, "output": rep},
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
                {**options, "output": rep},
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
    candidate, zero = _without_noise_eigenvalues(center, matrices)
    candidate = back(candidate)
    try:
        candidate, history = _final_predictor(
            found, candidate, train, validation, rep, options, clock, seed, stage("predictor")
        )
        interrupted |= history.ended.startswith("interrupted")
        evidence = _evidence(
            found, candidate, train, validation, test, rep, options, clock, seed, stage("peers")
        )
    except KeyboardInterrupt:
        interrupted, evidence = True, None
    _errors(found, candidate, matrices, W)
    if evidence is not None:
        evidence.restarts, evidence.near_best, evidence.agreeing = len(restarts), len(near), agreeing
        evidence.zero_directions = zero
        if spectral is not None:
            evidence.spectral_gap, evidence.spectral_residual = spectral.gap, spectral.residual
        if matrices is not None:
            _spread(evidence, candidate, matrices, W, found)
        found.evidence = evidence
        found.verdict, found.reason, found.advice = judge(evidence, candidate.group_name)
        found.confidence = confidence(evidence) if found.verdict is Verdict.FOUND else 0.0
    if interrupted:
        found.verdict, found.confidence = Verdict.UNDERDETERMINED, 0.0
        found.reason = (
            "The search was interrupted: this is the best form so far, and the evidence is not complete."
        )
        found.advice = "Run it again and let it finish; a smaller time budget ends by itself."


def hopeless(x: np.ndarray, y: np.ndarray, names: tuple[str, ...]) -> tuple[str, str] | None:
    """Data that no method could learn a form from: reason and advice."""
    n = x.shape[-1]
    if n < 2:
        return (
            "With one coordinate every even function respects the same form.",
            "Give vectors of two or more coordinates.",
        )
    if len(x) < MIN_SAMPLES:
        return (
            f"{len(x)} samples are too few to fit a predictor and to test it on others.",
            f"Give at least {MIN_SAMPLES} samples, better some hundreds; a form in {n} dimensions has "
            f"{n * (n + 1) // 2 - 1} unknowns.",
        )
    flat = x.reshape(-1, n)
    rms = np.sqrt((flat**2).mean(0))
    large, small = int(rms.argmax()), int(rms.argmin())
    if rms[small] > 0 and rms[large] / rms[small] > MAX_UNITS_RATIO:
        factor = 10.0 ** round(np.log10(rms[large] / rms[small]))
        raise DataError(
            f"mixed units: {names[large]} has size {rms[large]:.3g}, {names[small]} {rms[small]:.3g}; a form over such "
            f"columns has no digits left. Choose units in which they are comparable, e.g. divide {names[large]} by "
            f"{factor:.0e}: the form is then stated in these units"
        )
    if np.ptp(y.reshape(len(y), -1), axis=0).max() <= 1e-12 * max(1e-300, np.abs(y).max()):
        return ("The target is constant: every form fits it.", "Give a target that varies with x.")
    units = np.where(rms > 0, rms, 1.0)
    _, singular, directions = np.linalg.svd((flat / units)[:20_000], full_matrices=False)
    rank = int((singular > 1e-7 * singular[0]).sum())
    if rank < n:
        terms = zip(directions[-1], names, units)
        told = " ".join(f"{c:+.2f}·{name}/{unit:.2g}" for c, name, unit in terms if abs(c) > 0.05)
        return (
            f"The inputs lie in a subspace of dimension {rank} of {n} ({told} is always zero): the form outside it is "
            "unseen.",
            "Drop the redundant coordinate, or give inputs that vary in every direction.",
        )
    return None


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


def _eigenvalue_errors(form: QuadraticForm, matrices: Tensor) -> Tensor:
    """Bootstrap errors of the eigenvalues by first-order perturbation: δλ_i = v_iᵀ δA v_i."""
    _, Q = torch.linalg.eigh(form.matrix)
    sign = (matrices.mean(0) * form.matrix).sum().sign()
    return torch.einsum("ai,rab,bi->ri", Q, sign * matrices, Q).std(0)


def _without_noise_eigenvalues(form: QuadraticForm, matrices: Tensor | None) -> tuple[QuadraticForm, int]:
    """Set eigenvalues to zero that are small and not told from zero by the refits: the form is then singular."""
    if matrices is None:
        return form, 0
    values, Q = torch.linalg.eigh(form.matrix)
    errors = _eigenvalue_errors(form, matrices)
    is_zero = (values.abs() < ZERO_SHARE * values.abs().max()) & (values.abs() < 3 * errors + 1e-3)
    if not bool(is_zero.any()) or bool(is_zero.all()):
        return form, 0
    return QuadraticForm(Q * torch.where(is_zero, 0.0, values) @ Q.T, form.names), int(is_zero.sum())


def _errors(found: Discovery, candidate: QuadraticForm, matrices: Tensor | None, W: Tensor) -> None:
    """Attach the candidate and the bootstrap errors of its entries and eigenvalues, in the given coordinates."""
    found.candidate = candidate
    if matrices is None:
        return
    forms = _in_given_coordinates(matrices, W, candidate)
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


def _spread(e: Evidence, candidate: QuadraticForm, matrices: Tensor, W: Tensor, found: Discovery) -> None:
    """How far the refits are from the candidate, all with as many null directions as it has."""
    forms = [_with_null(A, e.zero_directions) for A in _in_given_coordinates(matrices, W, candidate)]
    e.refit_distances = [f.algebra_distance(candidate) for f in forms]
    e.signature_votes = float(np.mean([f.signature == candidate.signature for f in forms]))
    assert found.eigenvalue_errors is not None
    values = candidate.eigenvalues.abs().numpy()
    seen = values > 0.5 * ZERO_SHARE * values.max()
    e.weakest_eigenvalue = float((values[seen] / np.maximum(found.eigenvalue_errors[seen], 1e-12)).min())


def _final_predictor(
    found: Discovery,
    candidate: QuadraticForm,
    train: Data,
    validation: Data,
    rep: Rep,
    options: dict[str, Any],
    clock: _Clock,
    seed: int,
    progress: Callable[[float, str], None],
) -> tuple[QuadraticForm, History]:
    """Freeze the form and fit the predictor; on clean data let both move together once more, in float64."""
    progress(0.0, str(candidate))
    size = {"width": 64, "depth": 2, "seed": seed}
    found.network_options = {**options, **size}
    net = build_network(candidate, found.output, found.network_options).float()
    history = fit(
        net,
        *_single(train)[:2],
        point_scalars=_single(train)[2],
        sample_scalars=_single(train)[3],
        validation=tuple(_single(validation)),
        epochs=clock.epochs(len(train[0])),  # type: ignore[arg-type]
        batch_size=128 if len(train[0]) < 4_000 else 256,  # type: ignore[arg-type]
        lr=5e-3,
        patience=40,
        polish=clock.polish // 2,
        seed=seed,
        progress=False,
    )
    net.double()
    found.network = net
    progress(0.6, str(candidate))
    if history.ended.startswith("interrupted"):
        return candidate, history
    data, held = ([None if t is None else t.double() for t in part] for part in (train, validation))
    fixed = evaluate(net, held, scaled_mse(net))
    if candidate.signature.zero == 0:
        joint = _move_together(net, candidate, data, held, fixed, clock.polish)
        if joint is not None:
            candidate = joint
            found.network = build_network(candidate, found.output, found.network_options)
            weights = {k: v for k, v in net.state_dict().items() if not k.startswith("form.")}
            found.network.load_state_dict(weights, strict=False)
    return candidate, history


def _move_together(
    net: Any, candidate: QuadraticForm, data: Data, held: Data, fixed: float, steps: int
) -> QuadraticForm | None:
    """Second-order steps on form and weights; a better form only if validation says so clearly, else None.

    On success the weights of ``net`` are the moved ones, else those it came with.
    """
    before = {k: v.clone() for k, v in net.state_dict().items()}
    frozen = net.form
    net.form = LearnableForm(candidate.n, start=candidate).double()
    net.check_values = False
    best, state = fixed, None
    for score in second_order(net, list(net.parameters()), list(data), list(held), scaled_mse(net), steps):
        if score < best:
            best, state = score, {k: v.clone() for k, v in net.state_dict().items()}
    moved = None
    if state is not None and best < 0.7 * fixed:
        net.load_state_dict(state)
        A = net.form.matrix().detach()
        form = QuadraticForm(A, candidate.names)
        if (
            form.signature == candidate.signature and float((form.matrix * A).sum()) > 0
        ):  # the gauge kept its sign
            moved = form
    net.form, net.check_values = frozen, True
    weights = (
        before
        if moved is None or state is None
        else {k: v for k, v in state.items() if not k.startswith("form.")}
    )
    net.load_state_dict(weights, strict=False)
    return moved


def _evidence(
    found: Discovery,
    candidate: QuadraticForm,
    train: Data,
    validation: Data,
    test: Data,
    rep: Rep,
    options: dict[str, Any],
    clock: _Clock,
    seed: int,
    progress: Callable[[float, str], None],
) -> Evidence:
    """Compare with models that know no form, on held-out samples; look for structure in what is left over."""
    net = found.network
    assert net is not None and train[1] is not None and validation[1] is not None and test[1] is not None
    variance = float((test[1] - train[1].mean(0)).square().mean())
    own = predict(net, test[0], *test[2:])
    errors = peers.squared_errors(own, test[1])
    scalar = rep == TensorRep(0, 0)

    candidates: list[tuple[str, Tensor, float, int, Callable | None]] = []
    kernel = peers.KernelRidge.fit(train, validation, train[1], validation[1])
    candidates.append(("kernel ridge", kernel.predict(test), kernel.validation, kernel.parameters, None))
    progress(0.2, str(candidate))
    plain = PlainNet(
        FixedForm(QuadraticForm.euclidean(candidate.n)),
        output=rep,
        width=128,
        depth=2,
        seed=seed,
        **{**options, "set_like": False},
    )
    single = _single(train)
    fit(
        plain,
        *single[:2],
        point_scalars=single[2],
        sample_scalars=single[3],
        validation=tuple(_single(validation)),
        epochs=clock.epochs(len(train[0])),  # type: ignore[arg-type]
        batch_size=128 if len(train[0]) < 4_000 else 256,  # type: ignore[arg-type]
        lr=3e-3,
        patience=40,
        seed=seed,
        progress=False,
    )
    progress(0.7, str(candidate))
    at_validation = float((predict(plain, validation[0], *validation[2:]) - validation[1]).square().mean())
    count = sum(p.numel() for p in plain.parameters())
    candidates.append(("plain MLP", predict(plain, test[0], *test[2:]).double(), at_validation, count, plain))
    if scalar:
        trees = peers.boosted_trees(train, train[1], seed)
        score = float((trees(validation) - validation[1]).square().mean())
        candidates.append(("boosted trees", trees(test), score, 0, None))
    name, free, _, size, model = min(
        candidates, key=lambda c: c[2]
    )  # chosen on validation, never on held-out data
    free_errors = peers.squared_errors(free, test[1])

    residual = [part[1].double() - predict(net, part[0], *part[2:]) for part in (train, validation, test)]  # type: ignore[union-attr]
    rest = [peers.KernelRidge.fit(train, validation, residual[0], residual[1]).predict(test)]
    if scalar:
        rest.append(peers.boosted_trees(train, residual[0], seed)(test))
    corrected = [peers.squared_errors(r, residual[2]) for r in rest]
    gains = [1 - c.mean() / max(errors.mean(), 1e-300) for c in corrected]
    best = int(np.argmax(gains))
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
    few = [None if t is None else t[:64] for t in test]
    for boost in BOOSTS:
        for model_, target in ((net, found.certificate), (plain, found.free_certificate)):
            target[boost] = equivariance_error(
                model_, candidate, "vector", rep, few[0], samples=4, max_boost=boost, arguments=tuple(few[2:])
            )
    pick = slice(0, max(1, 2_000 * len(test[1]) // test[1].numel()))
    found.held_out = (test[1][pick].flatten().numpy(), own[pick].flatten().numpy())
    del model
    return Evidence(
        samples=len(train[0]),  # type: ignore[arg-type]
        unexplained=float(errors.mean()) / variance,
        free_unexplained=float(free_errors.mean()) / variance,
        free_p=peers.paired_p(free_errors, errors),
        structure_gain=float(gains[best]),
        structure_p=peers.paired_p(corrected[best], errors),
        restarts=0,
        near_best=0,
        agreeing=0,
    )


class _Clock:
    """Sizes of the work: fixed by the settings, or cut down to a time budget after timing a few steps."""

    def __init__(self, settings: Settings, budget: float | None):
        if budget is not None and budget <= 0:
            raise ValueError(f"time_budget = {budget}: give seconds above zero")
        self.settings, self.budget = settings, budget
        self.share = 1.0
        self.polish = 100

    def fit(self, white: list[list[Tensor | None]], options: dict[str, Any], seed: int) -> Settings:
        """The settings that fit the budget."""
        if self.budget is None:
            return self.settings
        trial = replace(self.settings, steps=8, drops=())
        start = time.perf_counter()
        search(
            white[0],
            white[1],
            options,
            extra=[],
            settings=trial,
            seed=seed,
            progress=lambda share, line: None,
        )
        step = (time.perf_counter() - start) / 8
        # Search, refits and the rest take about as long as the search alone would without dropping.
        self.share = min(1.0, self.budget / (3.0 * step * self.settings.steps * 0.5 + 1e-9))
        self.polish = max(10, int(100 * self.share))
        return replace(
            self.settings,
            steps=max(60, int(self.settings.steps * self.share)),
            refit_steps=max(60, int(self.settings.refit_steps * self.share)),
        )

    def epochs(self, samples: int) -> int:
        """Epochs of the final fits: about a thousand steps, fewer for a small budget."""
        return max(5, int(min(150, 160_000 / samples) * self.share))


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
