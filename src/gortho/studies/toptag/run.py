"""`gortho train toptag`: from files to a trained tagger in a directory, with its metrics, pictures and page."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from gortho.files import write_text
from gortho.forms import QuadraticForm
from gortho.studies.experiments.figures import heat_maps, pyplot
from gortho.studies.experiments.rows import facts
from gortho.studies.experiments.tables import markdown, number, write_page
from gortho.studies.toptag.blind import find_form
from gortho.studies.toptag.frames import compared, hidden_frame, label_free, minkowski_in, seen
from gortho.studies.toptag.invariance import broken_directions, invariance
from gortho.studies.toptag.page import cell
from gortho.studies.toptag.pictures import draw_roc
from gortho.studies.toptag.samples import Sample, load
from gortho.studies.toptag.saved import SIZES, save_tagger
from gortho.studies.toptag.tagger import Tagger, detector_axes
from gortho.studies.toptag.train import evaluate, train
from gortho.training.checkpoints import Ended, History
from gortho.training.processes import launched

CHECKPOINT, SETTINGS = "checkpoint.safetensors", "settings.json"


@dataclass(frozen=True)
class TaggerPlan:
    """What to train, and on what. The same plan in the same directory goes on where it was."""

    data: tuple[str, ...]
    size: str = "11k"
    epochs: int = 40
    batch_size: int = 256
    seed: int = 0
    lr: float = 3e-3
    learn_form: bool = False
    frame: int | None = None
    spurions: bool = False
    references: int = 0
    constituents: int = 64
    jets: int | None = None
    amp: bool = False
    compile: bool | None = None

    def some(self, *names: str) -> dict[str, Any]:
        """Some of the settings by their names."""
        return {name: getattr(self, name) for name in names}


def run(
    plan: TaggerPlan,
    out: Path,
    device: torch.device,
    say: Callable[[str], None] = print,
    progress: bool | None = None,
) -> dict[str, Any]:
    """Train (or go on training), test, and write everything to a directory; returns what metrics.json has."""
    pyplot()  # is it there? better asked before the training than after
    fabric = launched(device)
    first = fabric.global_rank == 0
    say = say if first else lambda text: None
    _claim(plan, out, first)
    began = time.perf_counter()
    samples = load([Path(path) for path in plan.data], plan.constituents, plan.jets, fabric)
    M = None if plan.frame is None else hidden_frame(plan.frame)
    training, validation, test = samples if M is None else (seen(sample, M) for sample in samples)
    truth = minkowski_in(M)
    say(f"{len(training):,} training, {len(validation):,} validation, {len(test):,} test jets")
    form = find_form(training) if plan.learn_form else truth  # training it on would lead away from the truth
    axes = detector_axes(M) if plan.spurions else ()
    net = Tagger(form, spurions=axes, **SIZES[plan.size], **plan.some("references", "seed")).to(device)
    say(f"tagger of {net.parameter_count():,} parameters, {plan.epochs} epochs on {device}")
    pays = device.type == "cuda" and fabric.world_size == 1
    history = train(
        net,
        training,
        validation,
        **plan.some("epochs", "batch_size", "lr", "amp", "seed"),
        bucket=device.type == "cpu",
        checkpoint=out / CHECKPOINT,
        compile=pays if plan.compile is None else plan.compile,
        say=say,
        fabric=fabric,
        progress=progress,
    )
    if history.best_epoch < 0:  # there is nothing to keep
        if history.how is Ended.INTERRUPTED:
            raise KeyboardInterrupt
        raise ValueError(
            "the validation loss was finite in no epoch: check the jets (gortho data toptag summary --verify), or give "
            f"a smaller lr than {plan.lr} and another --out"
        )
    found = _measured(net, history, training, validation, test, truth, fabric.world_size) | facts()
    if plan.learn_form:
        names = ["E", "px", "py", "pz"] if plan.frame is None else None  # a hidden frame has none
        for name, other in {"form": net.form.value(), "label_free": label_free(training)}.items():
            law = QuadraticForm(other.matrix, names).law()
            found[name] = compared(other, truth) | {"law": law}
    found["seconds"] = time.perf_counter() - began
    if first:
        save_tagger(net, out)
        write_text(out / "metrics.json", json.dumps(found, indent=1))
        draw_roc({"tagger": [found["roc"]]}, out / "roc.png")
        if plan.learn_form:
            forms = [("found A", found["form"]), ("label-free", found["label_free"])]
            heat_maps({"A": forms}, out / "form.png")
        _page(plan, found, out)
    return found


def _claim(plan: TaggerPlan, out: Path, first: bool) -> None:
    """Keep the plan beside the checkpoint, or find out that the directory belongs to another one."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file: give a directory")
    out.mkdir(parents=True, exist_ok=True)
    new = json.loads(json.dumps(asdict(plan)))
    file = out / SETTINGS
    if (out / CHECKPOINT).exists() and file.exists():
        old = json.loads(file.read_text(encoding="utf-8"))
        changed = [f"{k} {old.get(k)} → {new[k]}" for k in new if old.get(k) != new[k]]
        if changed:
            raise ValueError(
                f"{out} has a run with other settings ({'; '.join(changed)}): "
                "give another --out, or delete the directory to start anew"
            )
    if first:
        write_text(file, json.dumps(new, indent=1))


def _measured(
    net: Tagger,
    history: History,
    training: Sample,
    validation: Sample,
    test: Sample,
    truth: QuadraticForm,
    world: int,
) -> dict[str, Any]:
    """Everything that metrics.json has, as plain numbers."""
    scores = evaluate(net, test)
    return {
        "roc": scores.pop("roc"),
        "test": scores,
        "parameters": net.parameter_count(),
        "jets": {"train": len(training) * world, "validation": len(validation) * world, "test": len(test)},
        "training_seconds": history.seconds,
        "jets_a_second": len(training) * world * len(history.train) / max(history.seconds, 1e-9),
        "best_epoch": history.best_epoch + 1,
        "best_validation_loss": history.best_validation,
        "ended": history.ended,
        "interrupted": history.how is Ended.INTERRUPTED,
        "steps_left_out": history.left_out,
        "losses": {"train": history.train, "validation": history.validation},
        "invariance": [asdict(change) for change in invariance(net, test, truth)],
        "broken_directions": broken_directions(net, validation),
        "symmetry": net.extra_repr(),
    }


def left_out(found: dict[str, Any]) -> str:
    """A word on steps that were left out, if there were any."""
    count = found["steps_left_out"]
    return f"; steps left out, their gradients not finite: {count}" if count else ""


def metrics_table(test: dict[str, Any]) -> str:
    """Accuracy, AUC and rejections with their errors."""
    header = ["accuracy", "AUC", "1/εB at εS = 0.5", "1/εB at εS = 0.3"]
    digits = {"accuracy": 4, "auc": 4, "rejection_0.5": 1, "rejection_0.3": 0}
    return markdown(header, [[cell([test], name, count) for name, count in digits.items()]])


def _on_the_form(found: dict[str, Any]) -> list[str]:
    """The part of the page on a form that was learnt."""
    told = {"learnt from labels": "form", "label-free, for comparison (M9)": "label_free"}
    rows = [[name, *(number(found[key][c]) for c in ("cos", "d_PA"))] for name, key in told.items()]
    return [
        "## The form",
        f"`{found['form']['law']}`",
        markdown(["form", "\\|cos\\| with the truth", "d_PA to the truth"], rows),
        "The label-free form uses nothing but that constituents are massless; it is no discovery from labels.",
        "![true, learnt and label-free form](form.png)",
    ]


def _on_references(found: dict[str, Any]) -> list[str]:
    """The part of the page on references that were learnt."""
    rows = [
        [", ".join(f"{v:+.2f}" for v in r["direction"]), *map(number, list(r.values())[1:])]
        for r in found["broken_directions"]["references"]
    ]
    return [
        "## Broken directions",
        found["broken_directions"]["words"],
        markdown(["reference along", "size", "q(s)/\\|s\\|²", "loss without it", "its error"], rows),
        "Directions have length one; positive q is time-like, zero light-like. References act together: the "
        "network was not trained again without one, so its loss alone says less than the turning of all.",
    ]


def _page(plan: TaggerPlan, found: dict[str, Any], out: Path) -> None:
    """index.md."""
    jets = found["jets"]
    told_form = "the form found from labels" if plan.learn_form else "the Minkowski form known"
    frame = "" if plan.frame is None else f", momenta seen in the hidden frame {plan.frame}"
    refer = ", with beams and time axis given" if plan.spurions else ""
    parts = [
        f"{found['parameters']:,} parameters, {told_form}{frame}{refer}. Trained on {jets['train']:,} jets, tested on "
        f"{jets['test']:,}; {found['jets_a_second']:,.0f} jets/s in training; best epoch {found['best_epoch']} of "
        f"{len(found['losses']['train'])}, chosen on {jets['validation']:,} validation jets. "
        f"Ended: {found['ended']}{left_out(found)}.",
        metrics_table(found["test"]),
        "Errors are those of the finite test sample; another seed moves the figures, too.",
        "![background rejection against signal efficiency](roc.png)",
    ]
    if plan.learn_form:
        parts += _on_the_form(found)
    parts += [
        "## Invariance",
        f"By construction scores keep {found['symmetry']}. Changes of scores (logits) on test jets in float64, under "
        "random boosts, rotations and reflections.",
        markdown(
            ["under", "boosts up to", "median change", "largest change", "spread of scores"],
            [[c["group"], *map(number, list(c.values())[1:])] for c in found["invariance"]],
        ),
    ]
    if plan.references:
        parts += _on_references(found)
    parts += [
        "## Use it",
        f'```python\nfrom gortho.studies.toptag.saved import load_tagger\n\nnet = load_tagger("{out.name}")\n'
        "scores = net(x, mask)   # momenta (B, N, 4), real constituents (B, N); above zero means top\n```",
        "## Settings",
        "\n".join(
            f"- {name}: {', '.join(value) if isinstance(value, tuple) else value}"
            for name, value in vars(plan).items()
        ),
        f"- measured: {found['date']}\n- versions: {found['versions']}",
    ]
    write_page(out / "index.md", "Top tagger", *parts)
