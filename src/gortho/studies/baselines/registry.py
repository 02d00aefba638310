"""The methods of the tables: every `Method` in a file of this package that says in which tables it stands."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from gortho.studies import baselines
from gortho.studies.baselines.base import Method, Stand, Variant
from gortho.studies.tasks import Task


@dataclass(frozen=True)
class Entry:
    """A name in the tables, and the method behind it."""

    variant: Variant
    method: type[Method]

    @property
    def name(self) -> str:
        """As in the rows."""
        return self.variant.name

    def make(self, task: Task, seed: int, quick: bool = False) -> Method | None:
        """A fresh method for a task and a seed; None where it has nothing to do on the task."""
        told = self.variant.told(task)
        if told is None:
            return None
        options = {**self.variant.options, **told, **(self.variant.quick if quick else {})}
        return self.method(output=task.output, seed=seed, **options)


def methods() -> list[type[Method]]:
    """The classes of this package that stand in a table, in the order of their places."""
    found = []
    for module in pkgutil.iter_modules(baselines.__path__, baselines.__name__ + "."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, Method) and value.__module__ == module.name:
                # a subclass is another method: it does not stand where its parent does
                found += [value] if vars(value).get("variants") else []
    return sorted(found, key=lambda method: method.place)


def entries() -> dict[str, Entry]:
    """All names in the tables."""
    found: dict[str, Entry] = {}
    for method in methods():
        for variant in method.variants:
            if variant.name in found:
                raise ValueError(
                    f"{method.__name__}: another method is called {variant.name!r} in the tables"
                )
            found[variant.name] = Entry(variant, method)
    return found


def standing(table: str) -> dict[str, Stand]:
    """The names in a table from the top, with what the table has to know of each."""
    own = {
        name: entry.variant.tables[table]
        for name, entry in entries().items()
        if table in entry.variant.tables
    }
    return dict(sorted(own.items(), key=lambda pair: pair[1].place))


def fitted(table: str) -> dict[str, Stand]:
    """Those that are fitted for a table: all that cannot be read off another one in it."""
    own, known = standing(table), entries()
    return {name: stand for name, stand in own.items() if not set(known[name].variant.read_off) & set(own)}


def readings(name: str) -> Iterator[Entry]:
    """What is read off the network that the method of this name has trained."""
    return (entry for entry in entries().values() if name in entry.variant.read_off)


def tuning() -> dict[str, str]:
    """What each method was given before the tables were made, in its own words."""
    return {method.__name__: " ".join(method.tuning.split()) for method in methods()}
