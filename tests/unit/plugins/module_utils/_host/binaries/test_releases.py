# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The releases of plugins in steps: what they say, and that a downgrade is never safe."""

from __future__ import annotations

import random

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.plan import DISRUPTIVE, SAFE
from ansible_collections.podwire.cni.tests.tools import sample
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.binaries.plugin_host import ELF

RELEASES = ("0.9.1", "1.1.1", "1.9.1", "1.10.0")


def plugins(release, *names):
    """Return plugins that print this release, "" for none."""
    return {name: ELF + f"new {name} {'v' + release if release else ''}".encode() for name in names or ("bridge",)}


def steps(plan):
    return [(step.kind, step.step_class, step.reason) for step in plan.steps if step.kind != "make_directory"]


def install(host, release, by="", known=True):
    plan = host.present(plugins(release), release=release if known else "", by=by)
    seen = steps(plan)
    host.apply(plan)
    return seen


@pytest.mark.parametrize("known", [True, False])
def test_a_step_says_both_releases(plugin_host, known):
    assert install(plugin_host, "1.1.1", known=known) == [("install", SAFE, "not installed")]
    assert install(plugin_host, "1.9.1") == [("replace", SAFE, "1.1.1 to 1.9.1")]
    assert install(plugin_host, "1.10.0") == [("replace", SAFE, "1.9.1 to 1.10.0")]
    assert install(plugin_host, "1.9.1") == [("replace", DISRUPTIVE, "1.10.0 to 1.9.1, a downgrade")]


def test_what_somebody_else_installed_is_asked(plugin_host):
    plugin_host.put("bridge", plugins("1.9.1")["bridge"])
    plan = plugin_host.present(plugins("1.1.1"), release="1.1.1")
    assert steps(plan) == [("replace", DISRUPTIVE, "1.9.1 to 1.1.1, a downgrade")]
    plugin_host.apply(plan)
    # The previous file is newer.
    assert steps(plugin_host.restored("bridge")) == [("restore", SAFE, "the previous file is wanted; 1.1.1 to 1.9.1")]


def test_the_previous_file_may_be_older(plugin_host):
    install(plugin_host, "1.1.1")
    install(plugin_host, "1.9.1", by="upgrade")
    plan = plugin_host.restored("bridge")
    assert steps(plan) == [("restore", DISRUPTIVE, "the previous file is wanted; 1.9.1 to 1.1.1, a downgrade")]
    plugin_host.apply(plan)
    # Nothing is left of the upgrade.
    planned = steps(plugin_host.present(plugins("0.9.1"), release="0.9.1"))
    assert planned == [("replace", DISRUPTIVE, "1.1.1 to 0.9.1, a downgrade")]


def test_without_releases_the_versions_of_the_specification_tell(plugin_host):
    plugin_host.apply(plugin_host.present({"bridge": ELF + b"new bridge"}))
    older = {"bridge": ELF + b"old bridge"}
    # Before it has run once, nobody knows what the other file supports.
    text = "content differs; not known to be newer"
    assert steps(plugin_host.present(older)) == [("replace", DISRUPTIVE, text)]
    plugin_host.apply(plugin_host.present(older))
    plugin_host.apply(plugin_host.present({"bridge": ELF + b"new bridge"}))
    text = "content differs; it no longer supports CNI 1.1.0, a downgrade"
    assert steps(plugin_host.present(older)) == [("replace", DISRUPTIVE, text)]
    plugin_host.apply(plugin_host.present(older))
    plugin_host.apply(plugin_host.present({"bridge": ELF + b"new bridge"}, by="upgrade"))
    text = "upgraded by upgrade; the inventory has an older one"
    assert steps(plugin_host.present(older)) == [("replace", DISRUPTIVE, text)]


def test_what_is_agreed_is_said_until_the_inventory_agrees(plugin_host):
    install(plugin_host, "1.1.1")
    assert install(plugin_host, "1.9.1", by="upgrade") == [("replace", SAFE, "1.1.1 to 1.9.1")]
    agreed = [("replace", DISRUPTIVE, "upgraded to 1.9.1 by upgrade; the inventory says 1.1.1")]
    for _again in range(2):
        assert steps(plugin_host.present(plugins("1.1.1"), release="1.1.1")) == agreed
        assert steps(plugin_host.present(plugins("1.9.1"), release="1.9.1")) == []
    assert steps(plugin_host.present(plugins("1.10.0"), release="1.10.0")) == [("replace", SAFE, "1.9.1 to 1.10.0")]
    # Whoever takes it back all the same has agreed on that.
    assert install(plugin_host, "1.1.1") == agreed
    planned = steps(plugin_host.present(plugins("0.9.1"), release="0.9.1"))
    assert planned == [("replace", DISRUPTIVE, "1.1.1 to 0.9.1, a downgrade")]


@pytest.mark.parametrize(
    ("installed", "desired", "reason"),
    [
        ("", "", "upgraded by upgrade; the inventory has another one"),
        ("1.9.1", "", "upgraded to 1.9.1 by upgrade; the inventory has another one"),
        ("", "1.9.1", "upgraded by upgrade; the inventory says 1.9.1"),
        ("1.9.1", "1.9.1", "upgraded to 1.9.1 by upgrade; the inventory has another one"),
    ],
)
def test_what_may_be_older_than_what_is_agreed_is_disruptive(plugin_host, installed, desired, reason):
    file = {"bridge": plugins(installed)["bridge"] + b", built again"}
    plugin_host.apply(plugin_host.present(file, by="upgrade"))
    assert steps(plugin_host.present(plugins(desired), release=desired)) == [("replace", DISRUPTIVE, reason)]
    # Another upgrade does not take the first one back.
    again = steps(plugin_host.present(plugins(desired), release=desired, by="upgrade"))
    assert again[0][1] == (SAFE if installed and installed == desired else DISRUPTIVE)
    assert "by upgrade" not in again[0][2]


@pytest.mark.parametrize("release", ["", "1.9.1"])
def test_what_the_upgrade_has_replaced_comes_back_only_if_it_may_even_if_it_is_newer(plugin_host, release):
    newer = plugins(release)
    plugin_host.apply(plugin_host.present(newer, release=release))
    plugin_host.apply(plugin_host.present({"bridge": ELF + b"old bridge"}, by="upgrade"))
    says = f"says {release}" if release else "has another one"
    planned = steps(plugin_host.present(newer, release=release))
    assert planned == [("replace", DISRUPTIVE, f"upgraded by upgrade; the inventory {says}")]


def test_what_is_installed_comes_back_without_a_question_and_another_file_does_not(plugin_host):
    files = {"bridge": ELF + b"of nobody knows which release"}
    plugin_host.apply(plugin_host.present(files))
    plugin_host.put("bridge", ELF + b"by somebody else")
    assert steps(plugin_host.present(files)) == [("replace", SAFE, "content differs")]
    unknown = [("replace", DISRUPTIVE, "content differs; not known to be newer")]
    assert steps(plugin_host.present({"bridge": ELF + b"another"})) == unknown
    plugin_host.apply(plugin_host.absent("bridge", force=True))
    plugin_host.put("bridge", ELF + b"by somebody else")
    # The collection does not have it there any longer.
    assert steps(plugin_host.present(files)) == unknown


def test_what_another_program_has_replaced_since_is_not_agreed(plugin_host):
    install(plugin_host, "1.9.1", by="upgrade")
    plugin_host.put("bridge", plugins("1.10.0")["bridge"])
    planned = steps(plugin_host.present(plugins("1.1.1"), release="1.1.1"))
    assert planned == [("replace", DISRUPTIVE, "1.10.0 to 1.1.1, a downgrade")]


def test_the_desired_release_of_a_directory_is_asked(plugin_host, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    older, newer = plugins("1.1.1"), plugins("1.9.1")
    (source / "bridge").write_bytes(older["bridge"])
    plugin_host.apply(plugin_host.present(newer))
    plan = plugin_host.present(older, folder=str(source))
    assert steps(plan) == [("replace", DISRUPTIVE, "1.9.1 to 1.1.1, a downgrade")]


@pytest.mark.parametrize("seed", range(sample.number("EXAMPLES", 40, 10)))
def test_no_plan_downgrades_with_a_safe_step(plugin_host, seed):
    rng = random.Random(seed)
    names = ("bridge", "ptp", "portmap")

    for _each in range(4):
        before, desired, known = plugin_host.files(), rng.choice(RELEASES), rng.random() < 0.7
        if rng.random() < 0.3:
            plan = plugin_host.restored(*rng.sample(names, 2), force=rng.random() < 0.5)
        else:
            chosen = plugins(desired, *rng.sample(names, 2))
            plan = plugin_host.present(chosen, release=desired if known else "")
        plan.apply()
        after = plugin_host.files()
        for step in plan.steps:
            name = step.target.rpartition("/")[2]
            if step.kind in ("replace", "restore") and name in before:
                older = release(after[name]) < release(before[name])
                # What is not known to be newer may be older.
                allowed = (DISRUPTIVE,) if older else (SAFE,) if known else (SAFE, DISRUPTIVE)
                assert step.step_class in allowed, (seed, step.reason)


def release(content):
    return [int(part) for part in content.rpartition(b"v")[2].split(b".")]


def test_another_mode_changes_nothing_about_the_release(plugin_host):
    install(plugin_host, "1.9.1", by="upgrade")
    plugin_host.put("bridge", plugins("1.9.1")["bridge"], 0o700)
    plan = plugin_host.present(plugins("1.9.1"), release="1.9.1")
    assert [step[:2] for step in steps(plan)] == [("set_attributes", SAFE)]
    plugin_host.apply(plan)
    assert plugin_host.entry("bridge")["release"] == "1.9.1"
    assert plugin_host.entry("bridge")["installed_by"] == "upgrade"
