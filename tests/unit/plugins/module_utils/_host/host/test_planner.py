# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.host.plan import results_of
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.networks import planner as conf_planner
from ansible_collections.podwire.cni.plugins.module_utils._host.plan import Step
from ansible_collections.podwire.cni.tests.tools import sample
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.host.whole_host import (
    PLUGINS,
    attachment,
    errors,
    network,
    states,
    steps,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import raising

EXAMPLES = sample.number("EXAMPLES", 40, 8)


def sections(**changed):
    """Return a whole host as it is desired."""
    return {
        "plugins": {"version": "1", "plugins": list(PLUGINS)},
        "networks": {"networks": [network("a"), network("b", subnet="10.2.0.0/24")]},
        "netns": {"names": ["web", "db"]},
        "attachments": {"attachments": [attachment("a", "web"), attachment("b", "db")], "on_drift": "repair"},
        **changed,
    }


def undone():
    return {
        "plugins": {"state": "absent", "plugins": list(PLUGINS)},
        "networks": {"networks": [network("a", "absent"), network("b", "absent")]},
        "netns": {"names": ["web", "db"], "state": "absent"},
        "attachments": {"attachments": [attachment("a", "web", "absent"), attachment("b", "db", "absent")]},
    }


def test_the_diff_has_each_step_once_and_in_its_order(whole):
    whole.run_all(**sections())
    plan = whole.plan(**undone())
    shown = [os.path.dirname(step.target) if step.row else step.target for step in plan.steps]
    # The plugins of a directory are lines of one.
    assert [entry["before_header"] for entry in plan.diff()] == list(dict.fromkeys(shown))


# ---- what fails


def test_a_failed_section_keeps_only_what_needs_it(whole):
    whole.run_all(**sections())
    whole.release = HostError("no such archive", code="bad_source")
    os.unlink(os.path.join(whole.bin_dir, "meta"))
    plan = whole.apply(**sections(networks={"networks": [network("a"), network("c", subnet="10.3.0.0/24")]}))
    # Both networks and their attachments, of which CHECK cannot run, need the missing plugin: one cause, and one error.
    assert errors(plan) == [("plugins", "bad_source"), ("networks", "bad_source")]
    assert plan.warnings == {}
    [attached] = [part.plan for part in plan.parts if part.section == "attachments"]
    assert {(outcome.ended, outcome.error) for outcome in attached.outcomes} == {("left", None)}
    assert steps(plan) == []


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("fails", [False, True], ids=["not-given", "fails"])
def test_check_mode_shows_networks_although_plugins_are_missing(whole, check_mode, fails):
    wanted = sections()
    if fails:
        whole.release = HostError("no such archive", code="bad_source")
    else:
        # Another task may install them.
        del wanted["plugins"]
    plan = whole.plan(check_mode=check_mode, **wanted)
    missing = [] if check_mode else [("networks", "bad_source" if fails else "missing_plugin")]
    assert errors(plan) == [("plugins", "bad_source")] * fails + missing
    assert ("networks" in [section for section, *_rest in steps(plan)]) is check_mode
    # What follows from the failure is not told beside it.
    assert ("missing_plugin" in [code for code, _text in plan.warnings]) is (check_mode and not fails)
    if check_mode and fails:
        assert [row for row in results_of(plan, True)["problems"] if row["code"] == "missing_plugin"] == []


def test_an_error_while_networks_are_written(whole, monkeypatch):
    plan = whole.plan(**sections())
    (write,) = [step for part in plan.parts for step in part.steps if step.target.endswith("10-b.conflist")]
    monkeypatch.setattr(write, "action", raising(OSError(28, "No space left on device")))
    plan.apply()
    assert errors(plan) == [("networks", "write_failed")]
    assert states(plan) == (
        [("plugins", "done")] * 4
        + [("networks", "done")] * 2
        + [("networks", "failed")]
        + [("netns", "done")] * 2
        + [("attachments", "done")]
    )
    # The network that was written before is as it should be.
    assert whole.cached() == ["a-web-eth0"]
    assert steps(whole.run_all(**sections())) == [
        ("networks", "create", "10-b.conflist"),
        ("attachments", "add", "b/db/eth0"),
    ]


def test_removals_are_reported_after_an_error_of_the_networks(whole, monkeypatch):
    whole.run_all(**sections())
    wanted = undone()
    wanted["networks"]["networks"] = [network("new", subnet="10.4.0.0/24"), network("b", "absent")]
    del wanted["plugins"]
    plan = whole.plan(**wanted)
    (write,) = [step for part in plan.parts for step in part.steps if step.target.endswith("10-new.conflist")]
    monkeypatch.setattr(write, "action", raising(OSError(28, "No space left on device")))
    plan.apply()
    assert errors(plan) == [("networks", "write_failed")]
    assert states(plan)[-1] == ("networks", "left_out")
    assert steps(plan)[-1] == ("networks", "remove", "10-b.conflist")
    assert os.path.exists(os.path.join(whole.conf_dir, "10-b.conflist"))


@pytest.fixture
def interrupted(whole, monkeypatch):
    """Return a function that makes a plan with removals whose section netns will fail."""
    networks = [network("a"), network("b", ipam={"type": "extra"})]
    everything = {"version": "1", "plugins": [*PLUGINS, "extra"]}
    whole.run_all(**sections(plugins=everything, networks={"networks": networks}))

    def plan(*networks):
        monkeypatch.setattr(whole, "namespace", raising(HostError("no", code="no_mounts")))
        return whole.plan(
            plugins={"state": "absent", "plugins": ["extra"]},
            networks={"networks": [*networks, network("b", "absent")]},
            netns={"names": ["new"]},
            attachments={"attachments": [attachment("b", "db", "absent")]},
        )

    return plan


@pytest.mark.parametrize("others", [[], [network("new", subnet="10.4.0.0/24")]])
def test_removals_that_are_planned_again_share_one_manifest(whole, interrupted, others):
    plan = interrupted(*others)
    plan.apply()
    assert errors(plan) == [("netns", "no_mounts")]
    assert steps(plan)[-2:] == [("networks", "remove", "10-b.conflist"), ("plugins", "remove", "extra")]
    assert {step.state for step in plan.steps[-2:]} == {"done"}
    manifest = Manifest(whole.state)
    assert sorted(map(os.path.basename, manifest.networks)) == sorted(os.listdir(whole.conf_dir))
    assert sorted(map(os.path.basename, manifest.binaries)) == sorted(os.listdir(whole.bin_dir)) == sorted(PLUGINS)


def test_removals_that_cannot_be_planned_again_are_an_error_of_their_section(whole, interrupted, monkeypatch):
    plan = interrupted(network("new", subnet="10.4.0.0/24"))

    monkeypatch.setattr(
        conf_planner.ConfPlanner, "make", raising(HostError("somebody has broken it", code="bad_config"))
    )
    plan.apply()
    # The network stays, and so does the plugin that it needs.
    assert errors(plan) == [("netns", "no_mounts"), ("networks", "bad_config"), ("plugins", "plugin_in_use")]
    assert ("networks", "create", "10-new.conflist") in steps(plan)
    assert [section for section, *_rest in steps(plan)].count("plugins") == 0


def test_a_namespace_that_cannot_be_made(whole, monkeypatch):
    monkeypatch.setattr(whole, "namespace", raising(HostError("no mounts", code="no_mounts")))
    plan = whole.apply(**sections())
    assert errors(plan) == [("netns", "no_mounts")]
    assert [outcome.action for outcome in plan.parts[-1].plan.outcomes] == ["left", "left"]
    assert [state for section, state in states(plan) if section == "netns"] == ["failed", "left_out"]


# ---- changes under our feet


def test_a_file_that_appears_meanwhile_is_planned_again(whole):
    plan = whole.plan(**sections())
    os.mkdir(whole.bin_dir, 0o755)
    os.mkdir(whole.conf_dir, 0o755)
    path = os.path.join(whole.conf_dir, "10-b.conflist")
    Path(path).write_text("{}")
    plan.apply()
    # The second plan says what is in the way, and the others go on.
    assert ("networks", "foreign_file") in errors(plan)
    assert {section for section, _code in errors(plan)} == {"networks"}
    # What the first attempt has done is in the result.
    assert ("networks", "create", "10-a.conflist") in steps(plan)
    assert whole.cached() == ["a-web-eth0"]
    assert Path(path).read_text() == "{}"


# ---- any request: check mode tells the steps of the run


def some_sections(choice):
    """Return sections that do not contradict each other."""
    wanted = {}
    present = {name: choice.random() < 0.75 for name in "abc"}
    spaces = choice.sample(["web", "db", "job"], choice.randint(1, 3))
    if choice.random() < 0.8:
        plugins = choice.sample(PLUGINS, choice.choice([1, 3, 3, 3]))
        wanted["plugins"] = {"version": "1", "plugins": plugins}
    if choice.random() < 0.85:
        entries = [
            network(name, subnet=f"10.{choice.randint(1, 2)}.{number}.0/24") if there else network(name, "absent")
            for number, (name, there) in enumerate(present.items())
            if choice.random() < 0.8
        ]
        wanted["networks"] = {"networks": entries, "exclusive": choice.random() < 0.2}
    gone = {entry["name"] for entry in wanted.get("networks", {}).get("networks", []) if "state" in entry}
    if choice.random() < 0.8:
        wanted["netns"] = {"names": spaces, "state": choice.choice(["present", "present", "present", "absent"])}
    lost = set(spaces) if wanted.get("netns", {}).get("state") == "absent" else set()
    if choice.random() < 0.85:
        entries = []
        for number, name in enumerate("abc"):
            for space in ("web", "db", "job"):
                stays = name not in gone and space not in lost and choice.random() < 0.75
                if choice.random() < 0.7:
                    entries.append(attachment(name, space, "present" if stays else "absent", f"eth{number}"))
        on_drift = choice.choice(["report", "repair"])
        wanted["attachments"] = {"attachments": entries, "on_drift": on_drift}
    if gone and not present["a"] and choice.random() < 0.3 and all(name in gone for name in "abc"):
        wanted["plugins"] = {"state": "absent", "plugins": list(PLUGINS)}
    return wanted


def damage(whole, choice):
    """Change the host behind the collection's back."""
    for name in os.listdir(whole.bin_dir) if os.path.isdir(whole.bin_dir) else []:
        path = os.path.join(whole.bin_dir, name)
        what = choice.randrange(9)
        if what == 0:
            os.unlink(path)
        elif what == 1:
            Path(path).write_text("garbage")
        elif what == 2:
            os.chmod(path, 0o700)
    for name in os.listdir(whole.conf_dir) if os.path.isdir(whole.conf_dir) else []:
        path = os.path.join(whole.conf_dir, name)
        what = choice.randrange(9)
        if what == 0:
            os.unlink(path)
        elif what == 1 and name.endswith(".conflist"):
            text = Path(path).read_text()
            Path(path).write_text(text.replace("10.1.", "10.7."))
        elif what == 2:
            os.chmod(path, 0o600)
    for path in list(whole.namespaces):
        what = choice.randrange(6)
        if what == 0:
            del whole.namespaces[path]
        elif what == 1:
            whole.namespaces[path][1].discard(f"eth{choice.randrange(3)}")


def as_data(plan):
    return [{name: value for name, value in step.items() if name != "state"} for step in plan.progress()]


def sound(steps, bad):
    return [step for step in steps if step["section"] not in bad]


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_the_plan_of_check_mode_is_that_of_the_run(whole, seed):
    choice = random.Random(seed)
    for _round in range(6):
        wanted = some_sections(choice)
        classes = choice.choice([("safe", "disruptive")] * 3 + [("safe",), ("disruptive",)])
        whole.release = choice.choice(["new", "new", "old", HostError("no archive", code="bad_source")])
        check = whole.plan(check_mode=True, classes=classes, **wanted)
        plan = whole.plan(classes=classes, **wanted)
        # In check mode, another task may provide what is missing: the warning tells it.
        tolerated = any(code.startswith("missing_") or code == "ifname_in_use" for code, _text in check.warnings)
        tolerated = tolerated or "plugins" in dict(errors(check))
        if not tolerated:
            assert errors(check) == errors(plan), wanted
            # Check mode also shows what would change in a section that fails.
            bad = {section for section, _code in errors(plan)}
            assert sound(as_data(check), bad) == sound(as_data(plan), bad), wanted
            assert sound(map(Step.describe, check.left), bad) == sound(map(Step.describe, plan.left), bad), wanted
        before = as_data(plan)
        failed = bool(errors(plan))
        if plan.pending:
            plan.apply()
        if errors(plan):
            # Only a run tells that a DEL lacks its plugin.
            assert failed or any(step.kind == "del" and step.state == "failed" for step in plan.steps), wanted
        else:
            assert as_data(plan) == before
            assert {step.state for step in plan.steps} <= {"done"}
            again = whole.plan(check_mode=True, classes=classes, **wanted)
            assert as_data(again) == [] and errors(again) == [], wanted
        damage(whole, choice)
