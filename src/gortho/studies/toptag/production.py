"""Making many jets, in shards that can be made again one by one, by several processes.

A shard is (class, number): it has its own seeds, is written under a temporary name and renamed, and carries the recipe
it was made by. A run that was killed goes on with the shards that are missing and ends with the same files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from gortho.files import PART, only_writer
from gortho.samples import DataError

from .detector import CARD, Detector
from .events import CONSTANTS, needed, select, start_pythia
from .jets import FILE, LABELS, Jets, edges, write_jets

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
    phi_degrees: float = 5.0
    mpi: bool = False
    shard_jets: int = SHARD
    shares: tuple[float, float, float] = SHARES
    batch: int = 200  # events at a time: random numbers are drawn in arrays, so another size gives other jets

    def __post_init__(self) -> None:
        Detector(self.phi_degrees)  # complains about the cells

    def recipe(self) -> dict[str, Any]:
        """What the jets of a shard depend on, besides its class and number."""
        own = asdict(self)
        for name in ("jets", "shard_jets", "shares"):
            del own[name]
        packages = {name: version(name) for name in PACKAGES}
        return own | CONSTANTS | {"card": CARD, "recipe": RECIPE, "versions": packages}


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
    settings: Production, shard: Shard, directory: Path, watch: Callable[[int], Any] = lambda jets: None
) -> int:
    """Make a shard, which depends on settings and shard alone, and write it as a whole; returns its number of jets."""
    seeds = np.random.SeedSequence([settings.seed, shard.label, shard.number])
    pythia_seed = int(seeds.generate_state(1)[0]) % 900_000_000 + 1
    rng = np.random.default_rng(seeds.spawn(1)[0])
    detector = Detector(settings.phi_degrees)
    parts: list[Jets] = []
    found, events, top = 0, 0, shard.label == 1
    with start_pythia(top, pythia_seed, settings.mpi) as pythia:
        while found < shard.count:
            batch = pythia.nextBatch(settings.batch)
            events += len(batch)
            momenta, counts, pthat = select(batch, detector, rng, top)
            if len(counts):
                label = np.full(len(counts), shard.label, dtype=np.int8)
                parts.append(Jets(momenta, edges(counts), label, pthat=pthat)[: shard.count - found])
                found += len(parts[-1])
                watch(len(parts[-1]))
    meta = {"recipe": settings.recipe(), "events": events}
    write_jets(directory / shard.name, [Jets.cat(parts)], meta)
    return shard.count


def load_shard(directory: Path, shard: Shard, recipe: dict[str, Any]) -> Jets | None:
    """A shard; None if it is not there, or damaged. One of another recipe is an error."""
    path = directory / shard.name
    try:
        jets = Jets.open(path)
    except DataError:
        return None
    made_by = jets.meta.get("recipe", {})
    for name, value in recipe.items():
        if made_by.get(name) != value:
            raise DataError(
                f"{path} was made with {name} = {made_by.get(name)!r}, and now it is {value!r}: "
                "give the same settings, or another directory"
            )
    return jets


def generate(
    out: str | os.PathLike[str],
    settings: Production,
    workers: int = 1,
    hidden: bool = False,
) -> Jets:
    """Make the jets, or what is missing of them, with a progress bar, and put them together in `out`.

    The result depends on the settings alone, not on the number of workers or on interruptions.
    """
    for package in ("pythia8mc", "fastjet", "awkward"):
        needed(package)
    out = Path(out).expanduser()
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file: give a directory")
    directory = out / "shards"
    directory.mkdir(parents=True, exist_ok=True)
    with only_writer(out):
        recipe, todo = settings.recipe(), plan(settings)
        own = {"jets": settings.jets, "shard_jets": settings.shard_jets, "shares": list(settings.shares)}
        meta: dict[str, Any] = {"source": "generated", "settings": own | recipe}
        done = finished(out, meta["settings"], recipe)
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
            smoothing=0.05,
        ) as bar:
            if workers == 1 or len(missing) <= 1:
                for shard in missing:
                    make_shard(settings, shard, directory, bar.update)
            else:
                _share(settings, missing, directory, workers, bar.update)
        write_jets(out / FILE, assemble(out, settings, recipe, meta), meta)
    return Jets.open(out)


def finished(out: Path, wanted: dict[str, Any], recipe: dict[str, Any]) -> Jets | None:
    """The jets in `out`, if they are complete and made by the same settings; an error if they are others.

    An earlier part of these jets does not count as others, and damaged files are made again from the shards.
    """
    try:
        jets = Jets.open(out)
    except DataError:
        return None
    found = jets.meta.get("settings", {})
    if any(found.get(name) != recipe[name] for name in recipe):
        raise DataError(f"{out} holds other jets: give another directory, or remove it")
    return jets if found == wanted else None


def assemble(out: Path, settings: Production, recipe: dict[str, Any], meta: dict[str, Any]) -> Iterator[Jets]:
    """Shards of both classes together, a pair of them at a time, mixed; `meta` is told how many events they took."""
    groups: dict[int, list[Shard]] = {}
    for shard in plan(settings):
        groups.setdefault(shard.number, []).append(shard)
    codes = splits(len(groups), settings.shares)
    events = meta["events"] = dict.fromkeys(LABELS, 0)
    for number, shards in sorted(groups.items()):
        parts = []
        for shard in shards:
            jets = load_shard(out / "shards", shard, recipe)
            if jets is None:
                raise DataError(f"{out / 'shards' / shard.name} is missing or damaged: run the command again")
            events[LABELS[shard.label]] += jets.meta["events"]
            parts.append(jets)
        both = Jets.cat(parts)
        both.split_code += np.int8(codes[number])
        yield both[np.random.default_rng([settings.seed, number]).permutation(len(both))]


def _share(
    settings: Production, missing: list[Shard], directory: Path, workers: int, watch: Callable[[int], Any]
) -> None:
    """Make shards in several processes; if one of them dies, all end, and what is finished stays."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    from gortho.discovery.workers import as_done

    try:
        with closing(as_done(make_shard, ((settings, s, directory) for s in missing), workers)) as made:
            for count in made:
                watch(count)
    except TerminatedWorkerError:
        raise DataError(
            "a worker ended before its work was done (out of memory, or killed?): run the same command again, it "
            "continues with the missing shards; fewer workers need less memory"
        ) from None
