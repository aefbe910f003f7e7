# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The filters that validate and make networks. Their documentation is in the files beside this one."""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional, TypeVar, cast

from ansible.errors import AnsibleFilterError
from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils._host.problems import errors_of, rows, strict as with_strict, summary
from ..plugin_utils._conf.multus import absent_networks, multinet_networks, multus_network
from ..plugin_utils._conf.nads import CheckedNads
from ..plugin_utils._conf.schema import MISSING, jsonschema_needed
from ..plugin_utils._conf.validate import ALONE, Checked, DataSource, TextSource

F = TypeVar("F", bound=Callable[..., Any])
LEVELS = ("syntax", "schema")


def _validating(function: F) -> F:
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


def _flag(name: str, value: Any) -> bool:
    """Return the value of an option that is true or false. Raises ValueError."""
    try:
        return bool(boolean(value))
    except TypeError as error:
        raise ValueError(f"{name} must be true or false") from error


def _kind(value: Any) -> str:
    """Return the name of the type of a value, which Ansible may have changed."""
    return type(value).__name__.lstrip("_")


@_validating
def cni_multinet(
    networks: Any, network: str, settings: Optional[dict[str, Any]] = None, *, validate: Any = None
) -> list[dict[str, Any]]:
    """Return entries of cni_networks; see the filter's documentation."""
    if not isinstance(networks, list) or not isinstance(network, str) or not isinstance(settings or {}, dict):
        raise ValueError("expected a list of networks, the name of one, and a mapping of settings")
    return multinet_networks(networks, network, settings or {}, validate)


@_validating
def cni_multus(
    networks: Any,
    settings: Optional[dict[str, Any]] = None,
    cluster_network: Optional[str] = None,
    shim: bool = False,
    name: str = "multus-cni-network",
    file: str = "00-multus.conflist",
    alone: bool = False,
    *,
    validate: Any = None,
) -> Any:
    """Return an entry of cni_networks, or a list of them; see the filter's documentation."""
    if not isinstance(settings or {}, dict):
        raise ValueError("settings must be a mapping of keys of Multus")
    if not all(isinstance(text or "", str) for text in (cluster_network, name, file)):
        raise ValueError("cluster_network, name and file must be strings")
    is_shim, is_alone = _flag("shim", shim), _flag("alone", alone)
    conflist = multus_network(networks, settings or {}, cluster_network, is_shim, name, validate)
    entry = {"name": name, "file": file, "conflist": conflist}
    return [entry, *absent_networks(networks, name)] if is_alone else entry


@_validating
def cni_nads(
    nads: Any,
    namespace: Optional[str] = None,
    file: Optional[str] = None,
    strict: bool = False,
    problems: bool = False,
    *,
    validate: Any = None,
) -> list[dict[str, Any]]:
    """Return the manifests of *nads*, or their problems; see the filter's documentation."""
    if not isinstance(nads, (dict, list, str)):
        raise ValueError(f"the input must be a list, a mapping or YAML text, not {_kind(nads)}")
    if not isinstance(namespace or "", str):
        raise ValueError("namespace must be a string")
    as_errors, as_problems = _flag("strict", strict), _flag("problems", problems)
    checked = CheckedNads(nads, validate, namespace or "", file or "")
    findings = with_strict(checked.problems) if as_errors else checked.problems
    if as_problems:
        return rows(findings)
    if errors_of(findings):
        raise ValueError(summary(findings))
    return checked.manifests


@_validating
def cni_problems(
    conf: Any, name: Optional[str] = None, file: Optional[str] = None, strict: bool = False, *, validate: Any = None
) -> list[dict[str, Any]]:
    """Return the problems of *conf*, a mapping or JSON text; see the filter's documentation."""
    if not isinstance(conf, (dict, str)):
        raise ValueError(f"the input must be a mapping or JSON text, not {_kind(conf)}")
    as_errors = _flag("strict", strict)
    source = DataSource(conf) if isinstance(conf, dict) else TextSource(conf)
    problems = Checked(source, file or "", name, [*validate, ALONE] if "schema" in validate else validate).problems
    return rows(with_strict(problems) if as_errors else problems)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "cni_multinet": cni_multinet,
            "cni_multus": cni_multus,
            "cni_nads": cni_nads,
            "cni_problems": cni_problems,
        }
