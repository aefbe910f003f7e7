# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Controller half of cni_host: validates the sections, renders networks, and sends the plugins that a host lacks.

The role host and the playbooks do all that they do on a host in a task of this action (`PROCEDURES`), because each
task of a playbook prints a line for each host and costs a process for it, even if it is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..module_utils._host.errors import HostError
from ..module_utils._host.host.request import SECTIONS_ARGUMENTS, HostRequest
from ..modules.cni_host import ARGUMENTS
from ..plugin_utils import repair_program
from ..plugin_utils._conf.spelling import unsupported
from ..plugin_utils.module_action import INTERNAL, Result
from ..plugin_utils.preflight import bad_values, preflight, warn_of_unknown
from ..plugin_utils.settings import ROLES, Settings
from ..plugin_utils.shipping import ShippingAction, check_version, explain_release
from ..plugin_utils.teardown import blockers_of, sections_of
from ..plugin_utils.untrusted import rows, table, text
from ..plugin_utils.values import BadValue
from .cni_conf import ActionModule as ConfAction

OPTIONS = {name: spec for name, spec in ARGUMENTS.items() if name not in INTERNAL}
COMMON = ("conf_dir", "bin_dirs", "cache_dir")


class ActionModule(ShippingAction, ConfAction):
    MODULE = "cni_host"

    def run(self, tmp: str | None = None, task_vars: Result | None = None) -> Result:
        name = self._templar.template((task_vars or {}).get("__cni_host_procedure"))
        if not name:
            return super().run(tmp, task_vars)
        result = brief(Procedure(self, task_vars or {}).result_of(PROCEDURES[name]))
        if name in SUMMARIZED and "warnings" in result:
            # Ansible prints a warning without the name of its host.
            result["cautions"] = cautions_of(result)
            del result["warnings"]
        return result

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
        sent = {**arguments, **sections}
        if "plugins" in sections:
            result = self.with_source(options["plugins"], sent, task_vars)
        else:
            result = self.call(sent, task_vars)
        explain_release(result, table(table(result.get("plugins")).get("error")), sections.get("plugins", {}))
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


def brief(result: Result) -> Result:
    """Return a result; a failed one, which Ansible prints whole, without objects that neither changed nor failed."""
    if not result.get("failed"):
        return result

    def telling(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [row for row in value if table(row).get("action") not in ("none", "left") or row.get("error")]

    # The rows of runtimes are few, and the verification that may have failed is about them.
    names = [name for name in SECTIONS_ARGUMENTS if name != "runtime" and isinstance(result.get(name), dict)]
    return {**result, **{name: {key: telling(value) for key, value in result[name].items()} for name in names}}


def cautions_of(result: Mapping[str, Any]) -> list[str]:
    """Return the warnings of a result, without those about drift that a step of its plan repairs."""
    targets = [text(step.get("target")) for step in rows(result.get("plan"))]
    told = [
        f"[drifted] {text(finding.get('message'))}"
        for finding in rows(result.get("findings"))
        if finding.get("code") == "drifted" and text(finding.get("target")) in targets
    ]
    return [warning for warning in map(_words, result.get("warnings") or []) if warning not in told]


def _words(warning: Any) -> str:
    """Return the text of a warning: Ansible has objects instead of texts for those of modules that ran."""
    return text(getattr(getattr(warning, "event", None), "msg", warning))


def _named(networks: Any) -> list[Result]:
    """Return the names of *networks* that tell one, as entries without text."""
    names = [entry.get("name") or table(entry.get("conflist")).get("name") for entry in rows(networks)]
    return [{"name": name} for name in names if isinstance(name, str)]


UNITS = "/etc/systemd/system"
PROGRAM = "/usr/local/lib/podwire-cni"
REPAIR_UNIT = "podwire-cni-repair.service"
DHCP_UNITS = ("cni-dhcp.service", "cni-dhcp.socket")
# The link that enables the socket is dangling if the role enabled it. Otherwise it leads to the unit of a package.
START_PACKAGED = f"""\
set -e
link={UNITS}/sockets.target.wants/cni-dhcp.socket
[ -e "$link" ] || rm -f "$link"
systemctl daemon-reload
for unit in cni-dhcp.socket cni-dhcp.service; do
  ! systemctl --quiet is-enabled "$unit" 2>/dev/null || systemctl start "$unit"
done
"""


class StepFailed(Exception):
    """An action within a procedure has failed; ``result`` is what it returned."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.get("msg") or "a step failed without a message")
        self.result = result


class Procedure:
    """Actions on a host, one after another, within the task of an action."""

    def __init__(self, action: ActionBase, variables: Result, **instead: Any) -> None:
        self._action = action
        self._variables = {**variables, "__cni_host_procedure": None}
        decided = {**(variables.get("__cni_host_instead") or {}), **instead}
        self._settings = Settings({**self._variables, "__cni_host_instead": decided}, action._templar.template)
        self._changed = False
        self.errors: list[str] = []
        self._warnings: list[str] = []
        self._diff: list[Any] = []

    def result_of(self, steps: Callable[[Procedure], Result]) -> Result:
        """Return the result of a task that takes *steps*."""
        warn_of_unknown(self._variables, Display().warning)
        try:
            result = steps(self)
        except (StepFailed, BadValue) as error:
            result = {**getattr(error, "result", {}), "failed": True, "msg": str(error)}
        result["changed"] = bool(result.get("changed")) or self._changed
        if self.errors:
            said = [text for text in [result.get("msg")] if text and result.get("failed")]
            result.update(failed=True, msg="; ".join([*said, *self.errors]))
        for key, more in (("warnings", self._warnings), ("diff", self._diff)):
            if more:
                result[key] = [*result.get(key, []), *more]
        return result

    def _run(self, name: str, check_mode: bool | None = None, diff: bool | None = None, /, **arguments: Any) -> Result:
        """Return the result of an action or a module. Raises StepFailed."""
        action = self._action
        task = action._task.copy(exclude_parent=True, exclude_tasks=True)
        task._parent = action._task._parent
        task.action, task.args, task.async_val = name, arguments, 0
        task.check_mode = action._task.check_mode if check_mode is None else check_mode
        task.diff = action._task.diff if diff is None else diff
        loader = action._shared_loader_obj.action_loader
        parts = ("connection", "play_context", "loader", "templar", "shared_loader_obj")
        plugin = loader.get(
            name if loader.has_plugin(name) else "ansible.legacy.normal",
            task=task,
            **{part: getattr(action, f"_{part}") for part in parts},
        )
        result: Result = plugin.run(task_vars=self._variables)
        if result.get("failed"):
            raise StepFailed(result)
        return result

    def _change(self, action: str, /, **arguments: Any) -> Result:
        """Run an action whose change is one of the procedure."""
        result = self._run(f"ansible.builtin.{action}", **arguments)
        self._changed |= bool(result.get("changed"))
        diff = result.get("diff") or []
        self._diff += diff if isinstance(diff, list) else [diff]
        return result

    def _attempt(self, steps: Callable[..., Any], *arguments: Any) -> Any:
        """Return what *steps* return. What fails does not stop the procedure, but is its error in the end."""
        try:
            return steps(*arguments)
        except AnsibleConnectionFailure:
            raise
        except (AnsibleError, BadValue, StepFailed) as error:
            self.errors.append(str(error))
            return getattr(error, "result", {})

    # ---- the role host

    def bootstrap(self) -> Result:
        """Bring a host to its desired state, if there is one."""
        problem = preflight(self._variables, self._settings, Display().warning)
        return {"failed": True, "msg": problem} if problem else self.host()

    def host(self) -> Result:
        """Bring a host to its desired state. A section whose variables are not set is not touched."""
        problem = bad_values(self._variables, self._settings)
        if problem:
            return {"failed": True, "msg": problem}
        options = self._settings.options_of_host()
        plugins, attachments = (self._settings.selects(name) for name in ("plugins", "attachments"))
        # Before networks that need them are validated, and containers are attached to them.
        if plugins:
            self._attempt(self._builtin)
            self._attempt(self._dhcp_daemon, True)
        sections = [name for name in SECTIONS_ARGUMENTS if name in options]
        result: Result = {"skipped": True}
        if sections or options.get("gather") or options.get("audit"):
            result = self.planned(options)
        if "runtime" in sections:
            result["loaded"] = self._attempt(self._restarted, result)
        if plugins:
            self._attempt(self._dhcp_daemon, False)
        if attachments:
            self._attempt(self._repair_service)
        if result.get("skipped") and (self._changed or self.errors):
            del result["skipped"]
        return result

    def planned(self, options: Result, *modes: bool) -> Result:
        """Return the result of cni_host, whether it fails or not, in the task's *modes* or these: check mode, diff."""
        try:
            return self._run("podwire.cni.cni_host", *modes, **options)
        except StepFailed as error:
            return error.result

    def _restarted(self, result: Result) -> Result:
        networks, runtime = (result.get(name) or {} for name in ("networks", "runtime"))
        # A runtime that is restarted now would load other networks than it should.
        if not result.get("runtime") or runtime.get("error") or networks.get("error"):
            return {}
        left = [row for row in result.get("left") or [] if row.get("section") in ("networks", "runtime")]
        return self._loaded(runtime.get("configured") or [], left)

    # ---- the playbooks

    def explain(self) -> Result:
        """Find out whether a container that is started now gets a network."""
        result = self._run("podwire.cni.cni_info", gather=["readiness"], **self._settings.options("common"))
        levels = {"error": ["error"], "warning": ["error", "warning"]}.get(self._settings.value("cni_explain_fail"), [])
        answers = {key: result.get(key) for key in ("readiness", "problems", "warnings")}
        rows = (answers["readiness"] or {}).get("obstacles") or [] if levels else []
        wrong = [row["message"] for row in rows if row["level"] in levels]
        if levels and answers["readiness"] is None:
            wrong = [problem["message"] for problem in answers["problems"] or []] or ["the host could not be examined"]
        return {**answers, "fail": "; ".join(wrong)}

    def smoke(self) -> Result:
        """Test the networks."""
        return self._run("podwire.cni.cni_smoke", **self._settings.options("smoke", "common", "lock"))

    def gc(self) -> Result:
        """Find what dead containers left behind, and collect it on request."""
        check = self._action._task.check_mode or not self._settings.value("cni_gc_apply")
        result = self._run("podwire.cni.cni_gc", check, **self._settings.options("gc", "common", "lock"))
        # Without the request, nothing is to change.
        return {**result, "changed": result["changed"] and self._settings.value("cni_gc_apply")}

    def upgrade(self) -> Result:
        """Install plugins. Restore the old ones if a network that worked with them fails with the new ones."""
        if not (self._settings.value("cni_plugins_src") or self._settings.value("cni_plugins_version")):
            return {
                "failed": True,
                "msg": "Nothing to install: neither cni_plugins_version nor cni_plugins_src is set. Set one of them, "
                "as for the role podwire.cni.plugins.",
            }
        info = self._run("podwire.cni.cni_info", gather=["plugins"], **self._settings.options("common"))
        edited = [row["path"] for row in info["plugins"] if row["edited"]]
        if edited:
            return {
                "failed": True,
                "msg": f"Another program has replaced {', '.join(edited)} since they were installed, so a rollback "
                "would restore older ones. Nothing was changed. Repair or upgrade them with the role "
                "podwire.cni.plugins first.",
            }
        # A network that fails before does not count against the new plugins.
        before, _why = self._smoke()
        worked = {network for network, status in before.items() if status == "passed"}
        # They are staged and tested, and refused if a network needs a version that they do not support, or if its ADD
        # fails with them in a rehearsal.
        result = self.host()
        wrong = [str(result.get("msg"))] if result.get("failed") else []
        wrong += self.errors
        after: dict[str, str] = {}
        if not wrong:
            try:
                after, messages = self._smoke()
                wrong = [messages[network] for network in sorted(worked & set(messages))]
            except StepFailed as error:
                wrong = [str(error)]
        tested = {"before": before, "after": after}
        if wrong:
            self.errors = []
            return {"failed": True, "msg": self._rolled_back(result, wrong, worked), **tested}
        names = [name for name in ("cni_plugins_version", "cni_plugins_src") if self._settings.value(name)]
        if result.get("changed"):
            said = " and ".join(f"{name}: {self._settings.value(name)}" for name in names)
            self._warnings.append(
                f"write {said} into the inventory (group_vars), or the next run restores what it says now"
            )
        return {**result, **tested}

    def _smoke(self) -> tuple[dict[str, str], dict[str, str]]:
        """Test the networks; return the status of each, and the messages of those that fail."""
        try:
            result = self.smoke()
        except StepFailed as error:
            result = error.result
            if result.get("code") != "smoke_failed":
                raise
        rows = result["networks"]
        messages = {row["network"]: row["error"]["message"] for row in rows if row["status"] == "failed"}
        return {row["network"]: row["status"] for row in rows}, messages

    def _rolled_back(self, result: Result, wrong: list[str], worked: set[str]) -> str:
        """Take back an upgrade; return what was *wrong*, and which plugins are installed now."""
        steps = [row for row in result.get("plan") or [] if row["state"] in ("done", "planned")]
        options = self._settings.options("plugins_dir", "common", "lock")
        # A network that names a plugin that was not there before did not work before.
        states: dict[str, Result] = {"replace": {"state": "restored"}, "install": {"state": "absent", "force": True}}
        for kind, how in states.items():
            names = [row["target"].rpartition("/")[2] for row in steps if row["kind"] == kind]
            if names:
                self._run("podwire.cni.cni_plugins", plugins=names, **how, **options)
        again, _messages = self._smoke()
        lost = sorted(network for network in worked if again.get(network) == "failed")
        now = "The previous plugins are restored" if steps else "No plugin was changed"
        works = (
            f"but these networks no longer work: {', '.join(lost)}"
            if lost
            else "and every network that worked before works"
        )
        return f"{'; '.join(wrong)}. {now}, {works}"

    def teardown(self) -> Result:
        """Remove what this collection put on a host, and restore what was there before."""
        value, common = self._settings.value, self._settings.options("common")
        pod_dir = value("cni_pod_networks_dir")
        info = self._run("podwire.cni.cni_info", gather=["conf", "plugins", "attachments", "runtime"], **common)
        # One call reads the networks of one directory.
        pods = self._run("podwire.cni.cni_info", gather=["conf", "runtime"], **{**common, "conf_dir": pod_dir})
        unknown = [row for row in info["attachments"] if row["netns_state"] in ("unknown", "hidden")]
        forced = value("cni_teardown_force")
        blockers = blockers_of(info, [*info["conf"], *pods["conf"]], unknown) if not forced else []
        if blockers:
            remedy = "Resolve this first, or continue anyway with -e cni_teardown_force=true"
            return {"failed": True, "msg": f"{'. '.join(blockers)}. Nothing was changed. {remedy}"}
        first, *others = dict.fromkeys(filter(None, [*value("cni_bin_dirs"), value("cni_plugins_bin_dir")]))
        sections = sections_of(info, pods, unknown, forced, pod_dir)
        namespaces = value("cni_teardown_netns")
        if namespaces:
            sections["netns"] = {"names": namespaces, "state": "absent"}
        # Restores the original, not only the previous version. What would prevent this was checked above.
        restored: Result = {"state": "restored", "force": True}
        lock = self._settings.options("lock")
        result = self._run(
            "podwire.cni.cni_host",
            **{**common, **lock, **sections, "plugins": {**restored, "bin_dir": first}},
        )
        self._restart(result["runtime"]["configured"])
        self._remove_repair_service()
        self._remove_dhcp_daemon()
        # One call manages the plugins of one directory.
        for directory in others:
            more = self._run("podwire.cni.cni_plugins", bin_dir=directory, **restored, **common, **lock)
            self._changed |= bool(more.get("changed"))
            result["plan"] += more.get("actions") or []
        return result

    # ---- the roles of single sections

    def plugins(self) -> Result:
        """Install plugins of the collection, and manage the DHCP daemon."""
        self._builtin()
        for present in (True, False):
            self._dhcp_daemon(present)
        return {}

    def watch(self) -> Result:
        """Manage the repair service."""
        self._repair_service()
        return {}

    def restart(self) -> Result:
        """Restart runtimes after the module has configured them, and verify that they have loaded the network."""
        template, variables = self._action._templar.template, self._variables
        result = template(variables["cni_runtime_result"])
        verified = self._loaded(result.get("configured") or [], result.get("left") or [])
        return {**verified, "changed": False} if verified else {"skipped": not (self._changed or self._warnings)}

    def _builtin(self) -> None:
        names = self._settings.value("cni_plugins_builtin")
        if names:
            options = self._settings.options("plugins_files", "common", "lock", "classes")
            result = self._run("podwire.cni.cni_plugins", src="builtin", plugins=names, **options)
            self._changed |= bool(result.get("changed"))

    def _loaded(self, configured: list[Result], left: list[Result]) -> Result:
        """Restart runtimes; return the result of the verification that they have loaded the network, {} without one.

        *left* are the steps that were left.
        """
        value, restarted = self._settings.value, self._restart(configured)
        expected = value("cni_runtime_state") == "present" and value("cni_runtime_network")
        if not expected or left or not restarted or self._action._task.check_mode:
            return {}
        options = self._settings.options("runtime", "loaded", "common", "lock", "classes")
        return self._run("podwire.cni.cni_conf", networks=[], validate=[], **options)

    def _restart(self, configured: list[Result]) -> bool:
        """Restart the runtimes that still run with their former configuration, and return whether none does now."""
        value = self._settings.value
        # A restart is disruptive. It may also be due without any step, if an earlier run omitted it.
        may = value("cni_runtime_restart") and "disruptive" in value("cni_classes")
        due = [row for row in configured if row.get("restart")]
        for row in due:
            if may:
                service = value("cni_runtime_services").get(row["service"], row["service"])
                self._change("service", name=service, state="restarted")
            else:
                why = (
                    "cni_classes does not allow that"
                    if value("cni_runtime_restart")
                    else "cni_runtime_restart is false"
                )
                self._warnings.append(f"{row['runtime']} reads {value('cni_conf_dir')} when it is restarted; {why}")
        return may or not due

    # ---- services

    def _dhcp_daemon(self, present: bool) -> None:
        """Make the daemon of the plugin dhcp start on demand, or remove its units, if that is what the variable says.

        The units have the same names as those of the plugins. If a distribution's package has units for the daemon of
        its own release, systemd prefers those in /etc, so that there is only one socket.
        """
        if self._settings.value("cni_plugins_dhcp_daemon") is not present:
            return
        if present:
            units = [self._unit("plugins", name, backup=True) for name in DHCP_UNITS]
            # systemd does not know units that check mode has not written. A result without a state shows it.
            if all("state" in unit for unit in units):
                # A restart of the socket also restarts a running daemon.
                self._service("cni-dhcp.socket", any(unit["changed"] for unit in units))
            return
        self._remove_dhcp_daemon()

    def _remove_dhcp_daemon(self) -> None:
        units = self._written_units("plugins", "cni-dhcp.*")
        if units:
            self._change("systemd_service", name="cni-dhcp.socket", state="stopped")
            self._remove(*units)
            self._change("shell", _raw_params=START_PACKAGED)

    def _repair_service(self) -> None:
        """Install the service that puts back what attachments lose, or remove it, as the variable says."""
        present, name = self._settings.value("cni_attachments_watch"), REPAIR_UNIT
        if present:
            root = {"owner": "root", "group": "root"}
            self._change("file", path=PROGRAM, state="directory", mode="0755", **root)
            program = self._change("copy", src=repair_program.make(), dest=f"{PROGRAM}/repair.pyz", mode="0644", **root)
            unit = self._unit("attachments", name)
            if "state" in unit:
                self._service(name, unit["changed"], unit["changed"] or program["changed"])
        elif present is False:
            self._remove_repair_service()

    def _remove_repair_service(self) -> None:
        if self._written_units("attachments", REPAIR_UNIT):
            self._change("systemd_service", name=REPAIR_UNIT, enabled=False, state="stopped")
            self._remove(f"{UNITS}/{REPAIR_UNIT}", f"{PROGRAM}/repair.pyz")
            # The role pull has files there, too.
            self._change("command", argv=["rmdir", "--ignore-fail-on-non-empty", PROGRAM])
            self._change("systemd_service", daemon_reload=True)

    def _unit(self, role: str, name: str, **more: Any) -> Result:
        source = str(ROLES / role / "templates" / f"{name}.j2")
        owned = {"owner": "root", "group": "root", "mode": "0644"}
        return self._change("template", src=source, dest=f"{UNITS}/{name}", **owned, **more)

    def _service(self, name: str, reload: bool, restart: bool | None = None) -> None:
        state = "restarted" if (reload if restart is None else restart) else "started"
        self._change("systemd_service", name=name, enabled=True, state=state, daemon_reload=reload)

    def _written_units(self, role: str, pattern: str) -> list[str]:
        """Return the units that the collection wrote for a role."""
        mark = f"# Written by podwire[.]cni[.]{role}[.]"
        files = self._run("ansible.builtin.find", paths=UNITS, patterns=[pattern], contains=mark)["files"]
        return [file["path"] for file in files]

    def _remove(self, *paths: str) -> None:
        for path in paths:
            self._change("file", path=path, state="absent")


SUMMARIZED = ("bootstrap", "explain", "gc", "smoke", "teardown", "upgrade")
"""The playbooks that show the warnings of all hosts in the end."""
OF_ROLES = ("host", "plugins", "restart", "watch")
PROCEDURES: Mapping[str, Callable[[Procedure], Result]] = {
    name: getattr(Procedure, name) for name in (*SUMMARIZED, *OF_ROLES)
}
