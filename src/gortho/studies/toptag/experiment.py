"""`gortho reproduce toptag`: every method on the same jets, a row for each method, share of the jets and seed.

Rows are kept as they come (JSON lines), so a stopped run goes on where it was; `gortho.studies.toptag.page` makes the
page. Everything is chosen on validation jets; test jets are scored once, in the end.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from gortho.forms import QuadraticForm
from gortho.studies.baselines.base import form_of_generators, generator_distance
from gortho.studies.baselines.sets import FlatNet
from gortho.studies.experiments.rows import Row, facts, keep, missing, read_rows
from gortho.studies.toptag import rivals
from gortho.studies.toptag.blind import find_form
from gortho.studies.toptag.frames import compared, hidden_frame, label_free, minkowski_in, seen, with_masses
from gortho.studies.toptag.rivals import AUGERINO, MOMENTA, NETWORKS, READINGS, RELATIVE
from gortho.studies.toptag.samples import Sample, share
from gortho.studies.toptag.saved import SIZES
from gortho.studies.toptag.tagger import Tagger, detector_axes
from gortho.studies.toptag.train import evaluate, train
from gortho.training.checkpoints import Ended, History

KNOWN, GIVEN, UNKNOWN = "gortho, η known", "gortho, η known, beams and time given", "gortho, form unknown"
MASSLESS, MASSIVE = "massless", "pions and kaons"
#: Fractions of the jets are validated on the same fraction, at least this many.
LEAST_VALIDATION = 500

#: Seeds from here on: test results of seed 10 were seen while the rate of a learnt form was being chosen.
FIRST_SEED = 20

Samples = tuple[Sample, Sample, Sample]


@dataclass(frozen=True)
class Budget:
    """What every method is given: epochs and batches of training, and at least so many steps where jets are few."""

    size: str = "50k"
    epochs: int = 30
    batch_size: int = 256
    constituents: int = 64
    least_steps: int = 2_000
    fractions: tuple[float, ...] = (0.005, 0.01, 0.05, 1.0)

    def __str__(self) -> str:
        each = {name: value for name, value in asdict(self).items() if name != "fractions"}
        return ", ".join(f"{name} {value}" for name, value in each.items())


FULL = Budget()
QUICK = Budget("4k", epochs=10, batch_size=32, constituents=40, least_steps=100, fractions=(0.05, 0.2, 1.0))
#: Jets of a quick run.
QUICK_JETS = 2_000


@dataclass(frozen=True)
class Job:
    """What to measure: a method with a seed on a share of the training jets; hidden: in a frame of its own."""

    data: str
    method: str
    seed: int
    budget: str
    fraction: float = 1.0
    inputs: str = MASSLESS
    hidden: bool = False


#: What each part measures: (method, inputs, hidden frame); "fractions" on every share of the jets.
PARTS: dict[str, list[tuple[str, str, bool]]] = {
    "known": [(KNOWN, MASSLESS, False), (GIVEN, MASSLESS, False)],
    "unknown": [(UNKNOWN, MASSLESS, True)],
    "massive": [(KNOWN, MASSIVE, False), (UNKNOWN, MASSIVE, True)],
    "baselines": [(method, MASSLESS, False) for method in (*NETWORKS, *AUGERINO)],
    "fractions": [(method, MASSLESS, False) for method in (KNOWN, GIVEN, MOMENTA, RELATIVE)],
}


def jobs(
    data: str, seeds: int, budget: Budget, parts: Sequence[str] = (), first: int = FIRST_SEED
) -> list[Job]:
    """The jobs of these parts (all by default), seed by seed: a run that is stopped early has a bit of everything."""
    unknown = [name for name in parts if name not in PARTS]
    if unknown:
        raise ValueError(f"there is no part {unknown[0]!r}: choose from {', '.join(PARTS)}")
    made = [
        Job(data, method, seed, str(budget), fraction, inputs, hidden)
        for seed in range(first, first + seeds)
        for part in parts or PARTS
        for method, inputs, hidden in PARTS[part]
        for fraction in (budget.fractions if part == "fractions" else (1.0,))
    ]
    return list(dict.fromkeys(made))


def run(
    jobs: Sequence[Job],
    samples: Samples,
    budget: Budget,
    store: Path,
    device: torch.device,
    progress: bool = True,
) -> None:
    """Measure the jobs that no row answers; each appends its rows when it is done."""
    store.parent.mkdir(parents=True, exist_ok=True)
    todo = missing(jobs, read_rows(store))
    with tqdm(todo, desc="top tagging", unit="fit", disable=not progress) as bar:
        for job in bar:
            bar.set_postfix_str(f"{job.method}, {job.fraction:.1%} of jets, seed {job.seed}")
            keep(measure(job, samples, budget, device), store)


def measure(job: Job, samples: Samples, budget: Budget, device: torch.device) -> list[Row]:
    """Train, then test; a second row where LieGG is read off the network."""
    training, validation, test = samples
    if job.inputs == MASSIVE:
        training, validation, test = (with_masses(s, k) for k, s in enumerate(samples))
    training = share(training, job.fraction, job.seed)
    validation = share(validation, job.fraction, job.seed, LEAST_VALIDATION)
    M = hidden_frame(job.seed) if job.hidden else None
    if M is not None:
        training, validation, test = (seen(s, M) for s in (training, validation, test))
    truth = minkowski_in(M)
    began = time.perf_counter()
    net, history, form, generators, notes = fit(job, budget, training, validation, device, truth, M)
    seconds = time.perf_counter() - began
    if history.how is Ended.INTERRUPTED:
        raise KeyboardInterrupt  # half a training is no row
    row: Row = asdict(job) | {
        "training jets": len(training),
        "parameters": sum(p.numel() for p in net.parameters()),
        "seconds": seconds,
        "jets a second": len(training) * len(history.train) / max(history.seconds, 1e-9),
        "epochs": len(history.train),
        "best epoch": history.best_epoch + 1,
        "ended": history.ended,
        "steps left out": history.left_out,
        "notes": notes,
    }
    row |= evaluate(net, test) | _found(form, generators, truth)
    if job.hidden:
        free = _found(label_free(training), None, truth)
        row |= {f"label-free {name}": free[name] for name in ("cos", "d_PA", "form")}
    machine = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    row |= facts() | {"machine": f"{machine}, {torch.get_num_threads()} threads"}
    if job.method not in READINGS:
        return [row]
    reading = rivals.read_generators(net, training)
    found = _found(None, reading.generators, truth)
    return [row, row | found | {"method": READINGS[job.method], "seconds": time.perf_counter() - began}]


def _found(form: QuadraticForm | None, generators: Tensor | None, truth: QuadraticForm) -> Row:
    """How near a form, or generators and the form that they keep best, come to the truth."""
    if generators is not None:
        form = form_of_generators(generators)
        return compared(form, truth) | {"d_PA": generator_distance(generators, truth)}
    if form is not None:
        return compared(form, truth)
    return {"cos": None, "d_PA": None, "form": None, "true form": truth.matrix.tolist()}


def fit(
    job: Job,
    budget: Budget,
    training: Sample,
    validation: Sample,
    device: torch.device,
    truth: QuadraticForm,
    M: Tensor | None,
) -> tuple[Any, History, QuadraticForm | None, Tensor | None, dict[str, Any]]:
    """Train with the budget that all methods have: network, history, form or generators that were learnt, notes."""
    method, seed, shape, width = job.method, job.seed, SIZES[budget.size], rival_width(budget.size)
    batch_size = min(budget.batch_size, max(16, len(training) // 8))
    steps = max(1, len(training) // batch_size)
    epochs = max(budget.epochs, math.ceil(budget.least_steps / steps))
    options: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "seed": seed}
    notes: dict[str, Any] = {}
    if method in AUGERINO:
        augmented, history, notes["lambda"] = rivals.train_augerino(
            lambda: FlatNet(width, seed),
            AUGERINO[method],
            training,
            validation,
            **options,
            device=device,
        )
        return augmented, history, None, augmented.augmentation.generators(), notes
    net: Any
    if method in NETWORKS:
        net = NETWORKS[method](width, seed)
    elif method == UNKNOWN:  # the form that the labels tell; training it on would lead away from the truth
        began = time.perf_counter()
        net = Tagger(find_form(training), **shape, seed=seed)
        notes = {"search seconds": time.perf_counter() - began}
    else:
        net = Tagger(truth, **shape, spurions=detector_axes(M) if method == GIVEN else (), seed=seed)
    bucket = device.type == "cpu"
    history = train(net.to(device), training, validation, **options, bucket=bucket, progress=False)
    return net, history, net.form.value() if method == UNKNOWN else None, None, notes


def rival_width(size: str) -> int:
    """The width at which a set network has about as many parameters as the tagger of this size."""
    wanted = Tagger(**SIZES[size]).parameter_count()
    return max(8, round(math.sqrt(wanted / 4)))
