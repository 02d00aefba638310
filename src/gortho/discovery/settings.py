"""How much work a discovery does."""

from __future__ import annotations

from dataclasses import dataclass

from gortho import checks


@dataclass(frozen=True)
class Settings:
    """Size of the search; the benchmarks were run with the defaults.

    Attributes:
        starts: number of random forms that the scan begins with, in addition to those suggested by the data.
        generations: number of rounds of the scan.
        finalists: number of candidates that are refined with the large family at the end of the search.
        refits: number of refits to resamples, from which the errors of the form are computed.
        predictor_steps: Adam steps of the final predictor, before second-order ones.
        members: if more than one, the final predictor is the mean of this many refits to all samples.
        workers: number of processes for starts and refits; the answer does not depend on it.
        given_axes: whether simple forms in the given coordinates are among the starts.
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
