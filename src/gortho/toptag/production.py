"""Making many jets, in shards that can be made again one by one, by several processes.

A shard is (class, number): it has its own seeds, is written under a temporary name and renamed, and carries the recipe
it was made by. A run that was killed goes on with the shards that are missing and ends with the same files.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from gortho.files import PART, only_writer
from gortho.samples import DataError

from .detector import Detector
from .events import (
    ENERGY,
    JET_RADIUS,
    MAX_CONSTITUENTS,
    MAX_ETA,
    PT_RANGE,
    TOP_MASS,
    VETO_PT,
    VETO_SCALE,
    needed,
    select,
    start_pythia,
)
from .jets import FILE, LABELS, Jets
from .writing import JetsWriter, versions

SHARD = 5000
SHARES = (0.6, 0.2, 0.2)
PACKAGES = ("pythia8mc", "fastjet", "awkward", "numpy")
#: Counts in the recipe: raise it when code changes the jets.
RECIPE = 1


@dataclass(frozen=True)
class Production:
    """What decides the jets, apart from versions. Half of the jets are tops."""

    jets: int
    seed: int = 0
    card: str = "3.3.2"
    phi_degrees: float = 5.0
    mpi: bool = False
    pthat_min: float = 350.0
    shard_jets: int = SHARD
    shares: tuple[float, float, float] = SHARES
    veto: bool = True
    batch: int = 200  # events at a time: random numbers are drawn in arrays, so another size gives other jets

    def __post_init__(self) -> None:
        if self.jets < 2:
            raise DataError(f"jets is {self.jets}: at least 2 are needed, one of each class")
        if self.seed < 0:
            raise DataError(f"seed is {self.seed}: it must not be negative")
        if not 50 <= self.pthat_min <= 550:
            raise DataError(
                f"pthat_min is {self.pthat_min} GeV: jets of {PT_RANGE[0]:g} GeV need 50 to 550, 350 is usual"
            )
        if self.shard_jets < 1:
            raise DataError(f"shard_jets is {self.shard_jets}: it must be at least 1")
        if self.batch < 1:
            raise DataError(f"batch is {self.batch}: it must be at least 1")
        if len(self.shares) != 3 or min(self.shares) < 0 or abs(sum(self.shares) - 1) > 1e-6:
            raise DataError(f"shares are {self.shares}: give train, validation, test, with sum 1")
        Detector(self.card, self.phi_degrees)  # complains about the card

    def recipe(self) -> dict[str, Any]:
        """What the jets of a shard depend on, besides its class and number."""
        own = asdict(self)
        for name in ("jets", "shard_jets", "shares"):
            del own[name]
        constants = {
            "energy": ENERGY,
            "jet_radius": JET_RADIUS,
            "pt_range": list(PT_RANGE),
            "max_eta": MAX_ETA,
            "max_constituents": MAX_CONSTITUENTS,
            "top_mass": TOP_MASS,
            "veto_scale": VETO_SCALE,
            "veto_pt": VETO_PT,
            "recipe": RECIPE,
        }
        return own | constants | {"versions": versions(PACKAGES)}


@dataclass(frozen=True)
class Shard:
    """A piece of the work: `count` jets of one class."""

    label: int
    number: int
    count: int

    @property
    def name(self) -> str:
        """Name of its file."""
        return f"{LABELS[self.label].lower()}-{self.number:05d}-{self.count}.parquet"


def plan(settings: Production) -> list[Shard]:
    """The shards of a run, tops and QCD in turn; at least five of each class, so that all splits get some."""
    result = []
    for label in (1, 0):
        jets = settings.jets // 2 + (settings.jets % 2 if label else 0)
        size = max(1, min(settings.shard_jets, jets // 5))
        result += [
            Shard(label, number, min(size, jets - start)) for number, start in enumerate(range(0, jets, size))
        ]
    return sorted(result, key=lambda shard: (shard.number, -shard.label))


def splits(count: int, shares: tuple[float, float, float] = SHARES) -> list[int]:
    """Split of each of `count` shards: always the one that lacks most, so that more shards keep the first ones.

    >>> splits(10)
    [0, 1, 0, 2, 0, 0, 1, 0, 2, 0]
    """
    result: list[int] = []
    for number in range(1, count + 1):
        lacking = [share * number - result.count(code) for code, share in enumerate(shares)]
        result.append(int(np.argmax(np.round(lacking, 9))))
    return result


def make_shard(
    settings: Production, shard: Shard, watch: Callable[[int], Any] | None = None
) -> tuple[Jets, int]:
    """The jets of a shard, and how many events it took; both depend on settings and shard alone."""
    seeds = np.random.SeedSequence([settings.seed, shard.label, shard.number])
    pythia_seed = int(seeds.generate_state(1)[0]) % 900_000_000 + 1
    rng = np.random.default_rng(seeds.spawn(1)[0])
    detector = Detector(settings.card, settings.phi_degrees)
    momenta, counts, pthat = [], [], []
    found, events, top = 0, 0, shard.label == 1
    with start_pythia(top, pythia_seed, settings.pthat_min, settings.mpi, settings.veto) as pythia:
        while found < shard.count:
            batch = pythia.nextBatch(settings.batch)
            events += len(batch)
            p, n, hat = select(batch, detector, rng, top)
            take = min(len(n), shard.count - found)
            counts.append(n[:take])
            momenta.append(p[: n[:take].sum()])
            pthat.append(hat[:take])
            found += take
            if watch is not None:
                watch(take)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    label = np.full(shard.count, shard.label, dtype=np.int8)
    return Jets(np.concatenate(momenta), offsets, label, pthat=np.concatenate(pthat)), events


def save_shard(
    settings: Production, shard: Shard, directory: Path, watch: Callable[[int], Any] | None = None
) -> int:
    """Make a shard and write it as a whole; returns how many jets it has."""
    jets, events = make_shard(settings, shard, watch)
    jets.write(directory / shard.name, recipe=settings.recipe(), events=events)
    return shard.count


def load_shard(directory: Path, shard: Shard, recipe: dict[str, Any]) -> Jets | None:
    """A shard; None if it is not there, or damaged. One of another recipe is an error."""
    path = directory / shard.name
    try:
        jets = Jets.open(path)
    except DataError:
        return None
    made_by, recipe = jets.meta.get("recipe", {}), json.loads(json.dumps(recipe))
    if made_by != recipe:
        differs = [name for name in recipe if made_by.get(name) != recipe[name]]
        name = differs[0] if differs else "recipe"
        raise DataError(
            f"{path} was made with {name} = {made_by.get(name)!r}, and now it is {recipe.get(name)!r}: "
            "give the same settings, or another directory"
        )
    return jets


def generate(
    out: str | os.PathLike[str],
    settings: Production,
    workers: int = 1,
    hidden: bool = False,
    keep_shards: bool = True,
) -> Jets:
    """Make the jets, or what is missing of them, with a progress bar, and put them together in `out`.

    The result depends on the settings alone, not on the number of workers or on interruptions.
    """
    if workers < 1:
        raise DataError(f"workers is {workers}: it must be at least 1")
    for package in ("pythia8mc", "fastjet", "awkward"):
        needed(package)
    out = Path(out).expanduser()
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file: give a directory")
    directory = out / "shards"
    directory.mkdir(parents=True, exist_ok=True)
    with only_writer(out):
        recipe, todo = settings.recipe(), plan(settings)
        meta = describe(settings, recipe)
        done = finished(out, meta, recipe)
        if done is not None:
            return done
        for leftover in directory.glob(f"*{PART}"):
            leftover.unlink()
        missing = [shard for shard in todo if load_shard(directory, shard, recipe) is None]
        have = settings.jets - sum(shard.count for shard in missing)
        with tqdm(
            total=settings.jets,
            initial=have,
            unit=" jets",
            desc="making jets",
            disable=hidden,
            file=sys.stderr,
            smoothing=0.05,
        ) as bar:
            if workers == 1 or len(missing) <= 1:
                for shard in missing:
                    save_shard(settings, shard, directory, bar.update)
            else:
                _share(settings, missing, directory, min(workers, len(missing)), bar.update)
        assemble(out, settings, recipe, meta)
        if not keep_shards:
            for shard in todo:
                (directory / shard.name).unlink(missing_ok=True)
            if not any(directory.iterdir()):
                directory.rmdir()
    return Jets.open(out)


def describe(settings: Production, recipe: dict[str, Any]) -> dict[str, Any]:
    """What the file says about the way the jets were made."""
    own = {"jets": settings.jets, "shard_jets": settings.shard_jets, "shares": list(settings.shares)}
    return {"source": "generated", "settings": own | recipe}


def finished(out: Path, meta: dict[str, Any], recipe: dict[str, Any]) -> Jets | None:
    """The jets in `out`, if they are complete and made by the same settings; an error if they are others.

    An earlier part of these jets does not count as others, and damaged files are made again from the shards.
    """
    try:
        jets = Jets.open(out)
    except DataError:
        return None
    found, wanted = jets.meta.get("settings", {}), json.loads(json.dumps(meta["settings"]))
    if any(found.get(name) != wanted[name] for name in recipe):
        raise DataError(f"{out} holds other jets: give another directory, or remove it")
    return jets if found == wanted else None


def assemble(out: Path, settings: Production, recipe: dict[str, Any], meta: dict[str, Any]) -> None:
    """Put shards of both classes together, a pair of them at a time, in an order that mixes the classes."""
    groups: dict[int, list[Shard]] = {}
    for shard in plan(settings):
        groups.setdefault(shard.number, []).append(shard)
    codes = splits(len(groups), settings.shares)
    events = dict.fromkeys(LABELS, 0)
    with JetsWriter(out / FILE) as writer:
        for number, shards in sorted(groups.items()):
            parts = []
            for shard in shards:
                jets = load_shard(out / "shards", shard, recipe)
                if jets is None:
                    raise DataError(
                        f"{out / 'shards' / shard.name} is missing or damaged: run the command again"
                    )
                events[LABELS[shard.label]] += jets.meta["events"]
                parts.append(jets)
            offsets = np.concatenate([[0], np.cumsum(np.concatenate([part.counts for part in parts]))])
            columns = zip(*((part.momenta, part.label, part.split_code, part.pthat) for part in parts))
            momenta, label, split, pthat = map(np.concatenate, columns)
            both = Jets(momenta, offsets, label, split + np.int8(codes[number]), pthat)
            mixed = both[np.random.default_rng([settings.seed, number]).permutation(len(both))]
            writer.append(mixed.momenta, mixed.counts, mixed.label, mixed.split_code, mixed.pthat)
        writer.finish(meta | {"events": events})


def _share(
    settings: Production, missing: list[Shard], directory: Path, workers: int, watch: Callable[[int], Any]
) -> None:
    """Make shards in several processes; if one of them dies, all end, and what is finished stays."""
    before = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _end_with_the_parent) as crew:
        try:
            made = [crew.submit(save_shard, settings, shard, directory) for shard in missing]
            for shard in as_completed(made):
                watch(shard.result())
        except BrokenProcessPool:
            raise DataError(
                "a worker ended before its work was done (out of memory, or killed?): run the same command again, it "
                "goes on with the shards that are missing; fewer workers need less memory"
            ) from None
        except BaseException:
            crew.shutdown(wait=False, cancel_futures=True)
            for worker in set(multiprocessing.active_children()) - before:
                worker.terminate()
            raise


def _end_with_the_parent() -> None:
    """A worker whose parent was killed ends, too."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
