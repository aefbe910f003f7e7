# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Controller half of cni_host: validates the sections, renders networks, and sends the plugins that a host lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..module_utils._host.errors import HostError
from ..module_utils._host.host.request import SECTIONS_ARGUMENTS, HostRequest
from ..modules.cni_host import ARGUMENTS
from ..plugin_utils.module_action import INTERNAL, Result
from ..plugin_utils.reading import RenderingAction
from ..plugin_utils.remedies import unsupported
from ..plugin_utils.shipping import ShippingAction, check_version

OPTIONS = {name: spec for name, spec in ARGUMENTS.items() if name not in INTERNAL}
COMMON = ("conf_dir", "bin_dirs", "cache_dir")


class ActionModule(ShippingAction, RenderingAction):
    MODULE = "cni_host"

    def prepare(self, task_vars: Result) -> Result:
        arguments = {name: value for name, value in self._task.args.items() if value is not None}
        self._check_names(arguments)
        sections = {name: dict(arguments[name]) for name in SECTIONS_ARGUMENTS if name in arguments}
        problems: list[Result] = []
        for name in ("pod_networks", "networks"):
            if name in sections:
                problems += self._render_section(name, sections[name], arguments, task_vars)
        if "attachments" in sections:
            section = sections["attachments"]
            pods = section.pop("nads", None)
            section["attachments"] = self.resolve(section.get("attachments"), pods)
        _result, options = self.validate_argument_spec(OPTIONS)
        given = {name: {**options[name], **self._rendered(name, sections, options[name])} for name in sections}
        HostRequest(given, {name: options[name] for name in COMMON}, check_mode=self._task.check_mode)

        def call(told: Result | None, in_background: bool) -> Result:
            source = {} if told is None else {"_source": told}
            return self.call({**arguments, **sections, **source}, task_vars, in_background)

        result = self.with_source(options["plugins"], call) if "plugins" in sections else call(None, True)
        why = self.why_not_that_release(_error_of(result, "plugins"), sections.get("plugins", {}))
        if why:
            result["msg"] = f"{result.get('msg')}{why}"
        if isinstance(result.get("problems"), list):
            result["problems"] = problems + result["problems"]
        return result

    def _render_section(self, name: str, section: Result, arguments: Result, variables: Result) -> list[Result]:
        """Replace the networks of a section by their texts, and return the problems. Raises HostError."""
        problems: list[Result] = []
        try:
            section["networks"], problems = self.render(section, False, variables)
        except HostError as error:
            if not self._task.check_mode:
                raise
            # Check mode tells what else would change.
            section["networks"] = _named(section.get("networks"))
            told = {"code": error.code, "message": error.msg, **error.facts}
            arguments.setdefault("_refused", {})[name] = told
        section.pop("nads", None)
        return problems

    @staticmethod
    def _rendered(name: str, sections: Mapping[str, Result], options: Result) -> Result:
        if name == "attachments":
            resolved = sections[name]["attachments"]
            pairs = zip(options[name], resolved if isinstance(resolved, list) else [])
            return {name: [{**entry, "_networks": sent.get("_networks")} for entry, sent in pairs]}
        if name not in ("pod_networks", "networks"):
            return {}
        empty = dict.fromkeys(SECTIONS_ARGUMENTS["networks"]["options"]["networks"]["options"])
        return {"networks": [{**empty, **given} for given in sections[name]["networks"]]}

    @staticmethod
    def _check_names(arguments: Result) -> None:
        """Raise HostError ``bad_option`` for unknown sections and options, and for sections that are no mappings."""
        wrong = unsupported(arguments, OPTIONS, "cni_host")
        for name in SECTIONS_ARGUMENTS:
            section = arguments.get(name, {})
            if not isinstance(section, dict):
                wrong.append(f"{name}: a section is a mapping of the options of its module, not {section!r:.60}")
            else:
                wrong += unsupported(section, OPTIONS[name]["options"], "cni_host", f"{name}.")
        if wrong:
            raise HostError("; ".join(wrong), code="bad_option")
        check_version(arguments.get("plugins", {}).get("version"))

    def without_source(self, error: HostError, call: Any) -> Result:
        # Only the section fails.
        told = {"where": "", "only_ask": False, "last": True, "error": {"code": error.code, "message": error.msg}}
        return call(told, True)


def _named(networks: Any) -> list[Result]:
    """Return the names of *networks* that tell one, as entries without text."""
    entries = [entry for entry in networks if isinstance(entry, dict)] if isinstance(networks, list) else []
    names = [entry.get("name") or _name_in(entry.get("conflist")) for entry in entries]
    return [{"name": name} for name in names if isinstance(name, str)]


def _name_in(conflist: Any) -> Any:
    return conflist.get("name") if isinstance(conflist, dict) else None


def _error_of(result: Mapping[str, Any], section: str) -> Result:
    found = result.get(section)
    error = found.get("error") if isinstance(found, dict) else None
    return error if isinstance(error, dict) else {}
