# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Classes that hold values: their constructor follows from their annotations, as with dataclasses. Groups of values.

dataclasses compile a constructor for each class, which takes longer than to load all of a small module.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Tuple, TypeVar

__all__ = ["field", "grouped", "struct"]

K = TypeVar("K")
V = TypeVar("V")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass as struct, field
else:

    class field:
        """A default that is made for each object."""

        def __init__(self, default_factory):
            self.make = default_factory

    def struct(cls):
        """Give a class a constructor that takes a value for each annotated name, in their order."""
        names = list(cls.__annotations__)
        defaults = {name: getattr(cls, name) for name in names if hasattr(cls, name)}

        def construct(self, *values, **members):
            given = {**dict(zip(names, values)), **members}
            missing = [name for name in names if name not in given and name not in defaults]
            if missing or len(given) < len(values) + len(members) or not given.keys() <= set(names):
                raise TypeError(f"{cls.__name__} takes {', '.join(names)}")
            for name, default in defaults.items():
                if name not in given:
                    given[name] = default.make() if isinstance(default, field) else default
            self.__dict__.update(given)

        cls.__init__ = construct
        return cls


def grouped(pairs: Iterable[Tuple[K, V]]) -> Dict[K, List[V]]:
    """Return the values of *pairs* (key, value) by their keys, both in their order."""
    groups: Dict[K, List[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
