# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What the variables of the roles and playbooks mean: the one place where a variable becomes an option of a module.

A variable has the type of the option that it sets, and may also be text (:mod:`values`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from ansible.errors import AnsibleError

from ..filter.networks import cni_multinet, cni_multus
from ..module_utils._host.binaries.request import PLUGINS_ARGUMENTS
from ..module_utils._host.runtimes.profiles import CONFIGURABLE
from ..modules.cni_host import ARGUMENTS as HOST_ARGUMENTS
from .values import UNSET, BadValue, read_value

Value = Any


class Group(NamedTuple):
    """Options of a module, and the variable of each. A dot leads to an option of an option.

    *section* is the section of cni_host that has them.
    """

    variables: Mapping[str, str]
    section: str = ""
    module: str = "cni_host"

    def spec(self, option: str) -> Mapping[str, Any]:
        """Return the argument specification of an option."""
        # Imported late: other modules import much that cni_host does not.
        arguments = importlib.import_module(f"...modules.{self.module}", __name__).ARGUMENTS
        spec: Mapping[str, Any] = {"options": arguments}
        for name in filter(None, (self.section, *option.split("."))):
            spec = spec["options"][name]
        return spec


def _section(name: str, **variables: str) -> Group:
    return Group(variables, name)


def _named(prefix: str, *options: str) -> dict[str, str]:
    return {option: f"cni_{prefix}{option}" for option in options}


_CONFIGURE = ("state", "max_conf_num", "setup_serially", "allow", "wait")

SECTIONS: Mapping[str, Group] = {
    "plugins": _section(
        "plugins",
        **_named("plugins_", *(option for option in PLUGINS_ARGUMENTS if option not in ("plugins", "state"))),
        plugins="cni_plugins_names",
    ),
    "pod_networks": _section(
        "pod_networks",
        **_named("networks_", "validate", "strict", "owner", "group", "mode", "force"),
        networks="cni_pod_networks",
        nads="cni_pod_networks_nads",
        conf_dir="cni_pod_networks_dir",
    ),
    "networks": _section(
        "networks",
        **_named("networks_", "validate", "strict", "exclusive", "owner", "group", "mode", "force"),
        networks="cni_networks",
        on_not_effective="cni_networks_ensure_effective",
    ),
    "runtime": _section(
        "runtime",
        runtime="cni_runtime",
        **{f"configure.{option}": f"cni_runtime_{option}" for option in _CONFIGURE},
    ),
    "netns": _section("netns", names="cni_netns"),
    "attachments": _section(
        "attachments",
        **_named("attachments_", "timeout", "parallel", "on_drift", "check", "force", "preview"),
        attachments="cni_attachments",
        nads="cni_nads",
    ),
}
"""The sections of cni_host. The roles of single sections have the same variables."""

GROUPS: Mapping[str, Group] = {
    **SECTIONS,
    "common": Group(_named("", "conf_dir", "bin_dirs", "cache_dir")),
    "lock": Group(_named("", "lock_timeout")),
    "classes": Group(_named("", "classes")),
    "host": Group(_named("host_", "audit", "rehearse", "gather")),
    "gc": Group(_named("gc_", "keep_from", "keep", "networks", "scope", "min_age", "allow_empty"), module="cni_gc"),
    "smoke": Group(_named("smoke_", "networks", "ping", "packets", "timeout", "pod"), module="cni_smoke"),
    "plugins_files": _section("plugins", **_named("plugins_", "bin_dir", "owner", "group", "mode", "force")),
    "plugins_dir": _section("plugins", bin_dir="cni_plugins_bin_dir"),
    "loaded": _section("runtime", ensure_effective="cni_runtime_network"),
}

_OPTIONS = {name: (group, option) for group in GROUPS.values() for option, name in group.variables.items()}
ROLES = Path(__file__).parents[2] / "roles"


def _options_of_roles() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the variables of every role with their specifications."""
    for path in sorted(ROLES.glob("*/meta/argument_specs.yml")):
        specs = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        yield from specs["argument_specs"]["main"]["options"].items()


_WORDS = {"type": "list", "elements": "str"}
OTHERS: Mapping[str, Mapping[str, Any]] = {
    **{name: spec for name, spec in _options_of_roles() if name not in _OPTIONS},
    "cni_audit": {"type": "bool", "default": True},
    "cni_canary": {**_WORDS, "default": []},
    "cni_canary_passed": {"type": "bool", "default": False},
    "cni_drift_fail": {"type": "str", "choices": ["never", "error", "drift", "true", "false"], "default": "error"},
    "cni_explain_fail": {"type": "str", "choices": ["error", "warning", "never"], "default": "error"},
    "cni_gc_apply": {"type": "bool", "default": False},
    "cni_hosts": _WORDS,
    "cni_remediate_classes": {**HOST_ARGUMENTS["classes"], "default": ["safe"]},
    "cni_report_dir": {"type": "path", "default": "cni-report"},
    "cni_report_fail": {"type": "str", "choices": ["never", "error", "drift", "attention"], "default": "never"},
    "cni_report_against": {"type": "str"},
    "cni_report_keep": {"type": "int", "default": 30},
    "cni_report_max_age": {"type": "float", "default": 7.0},
    "cni_report_prometheus": {"type": "path"},
    "cni_serial": {"type": "list", "elements": "raw", "pattern": r"[1-9][0-9]*%?"},
    "cni_teardown_force": {"type": "bool", "default": False},
    "cni_teardown_netns": {**_WORDS, "default": []},
}
"""Variables that are no option of a module, with their defaults."""

_MULTUS = ("settings", "cluster_network", "shim", "name", "file")

# Where a role does not leave the default to the module.
_ROLES_DEFAULTS = {"cni_runtime_wait": 30}

VARIABLES = frozenset({*_OPTIONS, *OTHERS})
"""All variables that users set."""

SECTIONS_DECLARING: Mapping[str, tuple[str, ...]] = {
    "plugins": ("cni_plugins_src", "cni_plugins_version"),
    "pod_networks": ("cni_pod_networks", "cni_pod_networks_nads"),
    "networks": ("cni_networks",),
    "runtime": ("cni_runtime",),
    "netns": ("cni_netns",),
    "attachments": ("cni_attachments",),
}
"""The variables that make cni_host manage a section."""


def spec_of(name: str) -> Mapping[str, Any]:
    """Return the argument specification of a variable."""
    if name in OTHERS:
        return OTHERS[name]
    group, option = _OPTIONS[name]
    spec = group.spec(option)
    # Of the runtimes whose network the module knows, the roles take those that they can configure.
    return {**spec, "choices": list(CONFIGURABLE)} if name == "cni_runtime" else spec


class Settings:
    """The variables of a host, as values. *template* returns the value of what may be a template."""

    def __init__(self, variables: Mapping[str, Any], template: Callable[[Any], Any]) -> None:
        # What a playbook decides itself. As a variable of its own, no extra variable overrides it.
        self._variables = {**variables, **(variables.get("__cni_host_instead") or {})}
        self._template = template
        self._read: dict[str, Value] = {}

    def value(self, name: str, **default: Value) -> Value:
        """Return what was set, or else *default*, the variable's own default, or None. Raises BadValue."""
        value = self._found(name)
        if value is not UNSET:
            return value
        return default["default"] if default else spec_of(name).get("default")

    def is_set(self, name: str) -> bool:
        """Return whether a variable has a value. One that cannot be read has; whoever needs it will say why."""
        try:
            return self._found(name) not in (UNSET, [], {})
        except (AnsibleError, BadValue):
            return True

    def options(self, *names: str) -> dict[str, Value]:
        """Return the options of these groups whose variables are set, for the arguments of a module."""
        options: dict[str, Value] = {}
        for name in names:
            for option, variable in GROUPS[name].variables.items():
                value = self._found(variable)
                if value is UNSET:
                    value = _ROLES_DEFAULTS.get(variable, UNSET)
                if value is not UNSET:
                    outer, _dot, inner = option.partition(".")
                    if inner:
                        options.setdefault(outer, {})[inner] = value
                    else:
                        options[outer] = value
            if name == "networks" and self.is_set("cni_networks_multinet"):
                given = (self.value("cni_networks_multinet"), self.value("cni_networks_multinet_settings"))
                options["networks"] = cni_multinet(options.get("networks", []), *given)
        return options

    def selects(self, section: str) -> bool:
        """Return whether tags select a section of cni_host."""
        run, skip = (self._variables.get(f"ansible_{key}_tags") or [] for key in ("run", "skip"))
        # Other tags than those of the sections select the whole role.
        chosen = [name for name in SECTIONS if name in run and "all" not in run] or list(SECTIONS)
        return section in (self._variables.get("__cni_host_only") or chosen) and section not in skip

    def sections(self) -> list[str]:
        """Return the sections of cni_host that are declared, and selected by tags."""
        declared = {name for name, names in SECTIONS_DECLARING.items() if any(map(self.is_set, names))}
        if self.value("cni_multus").get("cluster_network") and "networks" in declared:
            declared.add("pod_networks")
        return [name for name in SECTIONS if name in declared and self.selects(name)]

    def options_of_host(self) -> dict[str, Value]:
        """Return the arguments of cni_host for this host; its sections are those of :meth:`sections`."""
        sections = {name: self.options(name) for name in self.sections()}
        multus, networks = self.value("cni_multus"), self.value("cni_networks", default=[])
        if "pod_networks" in sections and multus.get("cluster_network"):
            # The networks of the host belong where no runtime reads them if Multus finds them by a path.
            own = sections["pod_networks"].get("networks", [])
            sections["pod_networks"]["networks"] = [*networks, *own]
        if "networks" in sections and multus:
            # The directory of the runtimes has the file of Multus and nothing else, so that no runtime can fall back to
            # another network. The file is complete before those that go are removed, in both directions.
            given = {key: value for key, value in multus.items() if key in _MULTUS and value not in (None, "")}
            sections["networks"]["networks"] = cni_multus(sections["networks"]["networks"], **given, alone=True)
        return {**sections, **self.options("common", "lock", "classes", "host")}

    def _found(self, name: str) -> Value:
        if name not in self._read:
            self._read[name] = read_value(name, self._template(self._variables.get(name)), spec_of(name))
        return self._read[name]
