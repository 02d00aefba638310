"""How much work a discovery does."""

from __future__ import annotations

from dataclasses import dataclass

from gortho import checks


@dataclass(frozen=True)
class Settings:
    """Sizes of the work; the defaults are what the benchmarks were run with.

    Attributes:
        starts: random forms that the scan begins with, beside those that the data suggest.
        generations: rounds of the scan.
        finalists: how many ends of the search are looked at with the large family.
        refits: resamples that the errors of the form come from.
        predictor_steps: steps of Adam of the final predictor, after which come second-order ones.
        members: more than one: the final predictor is refitted this many times on all samples, and averaged.
        workers: processes that starts and refits run on; the answer does not depend on how many.
        given_axes: whether plain forms in the given coordinates are among the starts.
    """

    starts: int = 30
    generations: int = 6
    finalists: int = 3
    refits: int = 8
    predictor_steps: int = 300
    members: int = 1
    workers: int = 1
    given_axes: bool = True

    def __post_init__(self) -> None:
        least = {"starts": 0, "generations": 0}
        for name, value in vars(self).items():
            if name != "given_axes":
                object.__setattr__(self, name, checks.whole(value, f"Settings: {name}", least.get(name, 1)))
            elif not isinstance(value, bool | int) or value not in (0, 1):
                raise ValueError(f"Settings: given_axes = {value!r}: give True or False")
