# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What the filters that validate have in common: the levels, and errors that name the filter."""

from __future__ import annotations

import functools
from typing import Any, Callable, TypeVar, cast

from ansible.errors import AnsibleFilterError
from ansible.module_utils.parsing.convert_bool import boolean

from ._conf.schema import MISSING
from .remedies import jsonschema_needed

F = TypeVar("F", bound=Callable[..., Any])
LEVELS = ("syntax", "schema")


def validating(function: F) -> F:
    """Return a filter with the option ``validate``: the levels, by default both.

    It turns a ValueError into an error of Ansible, which begins with the name of the filter.
    """

    @functools.wraps(function)
    def filter_(*values: Any, validate: Any = None, **options: Any) -> Any:
        levels = list(LEVELS) if validate is None else validate
        try:
            if not isinstance(levels, list) or any(level not in LEVELS for level in levels):
                raise ValueError("validate must be a list of 'syntax' and 'schema'")
            if "schema" in levels and MISSING is not None:
                raise ValueError(jsonschema_needed("the level 'schema'", MISSING) + ", or write validate=['syntax']")
            return function(*values, validate=levels, **options)
        except ValueError as error:
            raise AnsibleFilterError(f"{function.__name__}: {error}") from error

    return cast(F, filter_)


def flag(name: str, value: Any) -> bool:
    """Return the value of an option that is true or false. Raises ValueError."""
    try:
        return bool(boolean(value))
    except TypeError as error:
        raise ValueError(f"{name} must be true or false") from error


def kind(value: Any) -> str:
    """Return the name of the type of a value, which Ansible may have changed."""
    return type(value).__name__.lstrip("_")
