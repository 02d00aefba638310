"""What answers are worth: right, honest or wrong, as told or by other thresholds, and how reliable a confidence is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gortho.discovery import defect, evidence, models, verdict
from gortho.stored import restored
from gortho.studies.experiments.figures import pyplot

#: Edges of the bins of confidence.
BINS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 1.0)
THRESHOLDS = (
    (verdict, "TOLERANCE"), (evidence, "CLEAR_GAIN"), (verdict, "MAX_UNEXPLAINED"), (verdict, "MAX_SPREAD"),
    (verdict, "SIGN_ERRORS"), (verdict, "TOLD_APART"), (evidence, "RULED_BY_FEW"), (verdict, "LEAST_CONFIDENT"),
    (evidence, "DOUBT"),
    (defect, "SIGNIFICANCE"), (defect, "GAIN_ERRORS"), (defect, "NOTABLE_GAIN"), (defect, "CERTAIN_SHARE"),
    (defect, "TWO_SIDED"),
)  # fmt: skip
#: What the tables need of a row, apart from kind and verdict.
COLUMNS = (
    "confidence", "low", "high", "true", "near", "signature", "covered", "d_PA", "seconds", "kind", "share", "wider",
    "wider right", "evidence"
)  # fmt: skip


def formless(row: Any) -> bool:
    """Whether a problem has no form."""
    return row["of"] in ("near miss", "formless") or (row["of"] == "classes" and row["kind"] != "levels")


def judged(rows: pd.DataFrame, again: bool = False) -> pd.DataFrame:
    """The rows, with what is right; verdicts as they were told, or by the thresholds as they are now."""
    found = pd.DataFrame([_judged(row, again) for _, row in rows.iterrows()], index=rows.index)
    return rows.drop(columns=["verdict", "confidence", "low", "high", "near"]).join(found)


def _judged(row: Any, again: bool) -> dict[str, Any]:
    name, sure, low, high = row.verdict, row.confidence, row.low, row.high
    if again and isinstance(row.evidence, dict):
        e = restored(row.evidence, evidence.Evidence)
        told = verdict.judge(e, "O(A)", verdict.TOLERANCE)[0]
        name, sure, low, high = told.name, verdict.confidence(e, told), e.defect.low, e.defect.high
    none = formless(row)
    near = str(row["signature" if row.of == "classes" else "near"]) == "True"
    holds = bool(np.isnan(row.true)) or low <= row.true + 1e-9 <= high + 2e-9
    # With a direction or an origin the interval is that of what is left, not that of O(A).
    wider = isinstance(row.wider, str) and bool(row.wider)
    held = str(row["wider right"]) == "True" if wider else holds
    if none:
        right = name != "FOUND" or (row.kind == "direction" and held)
    elif row.of == "broken" and row.true > 0:
        right = name == "NONE" or (name == "FOUND" and (held if wider else near and holds))
    else:
        right = name == "FOUND" and near
    return {
        "verdict": name,
        "confidence": sure,
        "low": low,
        "high": high,
        "right": right,
        "holds": holds,
        "wide": wider,
        "honest": name == "UNDERDETERMINED" and not none,
        "formless": none,
        "near": near,
    }


def by_kind(rows: pd.DataFrame) -> pd.DataFrame:
    """One line for each kind of problem."""
    lines = []
    for kind, g in judged(rows).groupby("of"):
        wrong = ~g.right & ~g.honest
        line: dict[str, Any] = {"problems": kind, "count": len(g)}
        line |= {
            name: f"{part.mean():.1%}"
            for name, part in (("right", g.right), ("honest", g.honest), ("wrong", wrong))
        }
        line |= {v: int((g.verdict == v).sum()) for v in ("FOUND", "NONE", "UNDERDETERMINED")}
        known = g[~g.formless]
        line["form near"] = f"{known.near.mean():.1%}" if len(known) else ""
        line["entries in their 95 % intervals"] = f"{known.covered.mean():.1%}" if len(known) else ""
        line["median d_PA"] = f"{known.d_PA.median():.4f}" if len(known) else ""
        line["median seconds"] = f"{g.seconds.median():.1f}"
        lines.append(line)
    return pd.DataFrame(lines)


def by_share(rows: pd.DataFrame) -> pd.DataFrame:
    """Broken laws: does the interval of the defect hold the truth?"""
    g = judged(rows[rows.of == "broken"])
    return pd.DataFrame(
        {
            "broken by": f"{share:.1%}",
            "laws": len(part),
            "FOUND": int((part.verdict == "FOUND").sum()),
            "with a direction or an origin": int(((part.verdict == "FOUND") & part.wide).sum()),
            "of these right": int(((part.verdict == "FOUND") & part.wide & part.right).sum()),
            "NONE": int((part.verdict == "NONE").sum()),
            "intervals of O(A)": int((~part.wide).sum()),
            "that hold the share": int((part.holds & ~part.wide).sum()),
            "FOUND, interval ends below": int(
                ((part.verdict == "FOUND") & ~part.wide & (part.high + 2e-9 < part.true)).sum()
            ),
            "median upper end": f"{part.high[~part.wide].median():.2%}",
        }
        for share, part in g.groupby("share")
    )


def reliability(g: pd.DataFrame) -> pd.DataFrame:
    """Among answers with a confidence in a range, how many are right."""
    lines = []
    for low, high in itertools.pairwise(BINS):
        part = g[(g.confidence >= low) & (g.confidence < high)]
        if len(part):
            error = (part.right.mean() * (1 - part.right.mean()) / len(part)) ** 0.5
            lines.append(
                {
                    "confidence": f"{low:.2f} to {high:.2f}",
                    "answers": len(part),
                    "mean confidence": f"{part.confidence.mean():.3f}",
                    "right": f"{part.right.mean():.3f} ± {error:.3f}",
                }
            )
    return pd.DataFrame(lines)


@contextmanager
def changed(module: Any, name: str, factor: float) -> Iterator[None]:
    """A threshold halved or doubled for a while, wherever it is used."""
    kept = getattr(module, name)
    users = [user for user in (defect, evidence, models, verdict) if hasattr(user, name)]
    for user in users:
        setattr(user, name, kept * factor)
    try:
        yield
    finally:
        for user in users:
            setattr(user, name, kept)


def sensitivity(rows: pd.DataFrame) -> pd.DataFrame:
    """How the rates move when a threshold is halved and doubled."""

    def rates() -> dict[str, str]:
        g = judged(rows, again=True)
        form, none = g[~g.formless & (g.of != "broken")], g[g.formless]
        broken = g[g.of == "broken"]
        return {
            "right, with a form": f"{form.right.mean():.1%}",
            "wrong, with a form": f"{(~form.right & ~form.honest).mean():.1%}",
            "wrong, without a form": f"{(~none.right).mean():.1%}",
            "broken laws: interval holds": f"{broken.holds[~broken.wide].mean():.0%}",
        }

    lines = [{"threshold": "as they are", "value": ""} | rates()]
    for module, name in THRESHOLDS:
        for factor in (0.5, 2.0):
            with changed(module, name, factor):
                lines.append({"threshold": name, "value": f"{getattr(module, name):.3g}"} | rates())
    return pd.DataFrame(lines)


def answers(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that are not left open, with what is right."""
    g = judged(rows)
    return g[g.verdict != "UNDERDETERMINED"]


def tables(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The tables of the page."""
    return [
        ("By kind of problem", by_kind(rows)),
        ("Laws that are broken by a known share of their variance", by_share(rows)),
        ("Confidence and how often it is right (FOUND and NONE together)", reliability(answers(rows))),
        ("Each threshold halved and doubled", sensitivity(rows)),
    ]


def draw(path: Path, rows: pd.DataFrame) -> None:
    """The reliability diagram."""
    plt = pyplot()
    g = answers(rows)
    g = g[g.confidence > 0].sort_values("confidence")
    figure, axes = plt.subplots(figsize=(5, 4.5), layout="constrained")
    axes.plot([0.4, 1], [0.4, 1], color="0.7", lw=1, label="perfectly reliable")
    parts = [part for part in np.array_split(np.arange(len(g)), max(3, len(g) // 40)) if len(part)]
    if parts:
        means = np.array([g.confidence.iloc[i].mean() for i in parts])
        right = np.array([g.right.iloc[i].mean() for i in parts])
        errors = np.array([((r * (1 - r) + 0.25 / len(i)) / len(i)) ** 0.5 for r, i in zip(right, parts)])
        label = f"about {len(parts[0])} answers each"
        axes.errorbar(means, right, errors, fmt="o", color="tab:blue", capsize=3, label=label)
    axes.set(xlabel="confidence", ylabel="share of right answers", xlim=(0.4, 1.01), ylim=(0, 1.05))
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
