# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A containerd that runs, and a podman."""

from __future__ import annotations

import re

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh, wait_until

FIRST = {
    "name": "pwrfirst",
    "priority": 1,
    "content": '{"cniVersion": "0.4.0", "name": "pwrfirst", "type": "loopback"}',
}


@pytest.fixture(scope="module", autouse=True)
def _no_bridge(runtimes):
    yield
    runtimes("uninstall")
    sh("[ ! -e /sys/class/net/pwrpods0 ] || ip link delete pwrpods0")


@pytest.fixture(scope="module")
def configure(host, runtimes):
    """Return a function that lets a runtime read the directory and use the network pwrpods, or expects that it does."""

    def let(runtime, run=host.run, **options):
        return run("cni_conf", networks=[], runtime=[runtime], configure={"wait": 30}, **options)

    return let


@pytest.fixture(scope="module")
def configured(host, configure, runtimes):
    """The results of configuring containerd, which was restarted then."""
    results = configure("containerd", lambda module, **options: host.change(module, containerd, **options))
    runtimes("stop")
    runtimes("start")
    return results


def containerd():
    """Return the process of containerd."""
    return sh("pidof -s containerd")


def test_containerd_is_configured(configured):
    assert configured.check["configured"] == configured.run["configured"]


def test_a_restart_is_due_until_containerd_was_restarted(configured, configure):
    assert configured.run["configured"][0]["restart"]
    assert configured.again["configured"][0]["restart"]
    now = configure("containerd")
    assert not now["changed"]
    assert not now["configured"][0]["restart"]


def test_containerd_gives_the_network_to_pods(configured, configure, nets, runtimes):
    loaded = configure("containerd", ensure_effective="pwrpods")
    assert not loaded["changed"]
    assert loaded["configured"][0]["networks"] == ["pwrpods"]
    assert loaded["configured"][0]["ready"]
    assert loaded["effective"][0]["conf_dir"] == str(nets)

    pod = runtimes("pod", "pwr")
    try:
        results = sh("ls /var/lib/cni/results").splitlines()
        assert [name for name in results if re.fullmatch("pwrpods-[0-9a-f]+-eth0", name)]
    finally:
        runtimes("remove-pod", pod)


def test_a_network_that_comes_first_is_in_the_way(host, configured, configure):
    written = host.run("cni_conf", networks=[FIRST])
    try:
        assert not configure("containerd")["changed"]
        refused = configure("containerd", host.fail, ensure_effective="pwrpods")
    finally:
        removed = host.run("cni_conf", networks=[{"name": "pwrfirst", "state": "absent"}])
    assert refused["code"] == "not_effective"
    assert "01-pwrfirst.conflist" in refused["msg"]
    # containerd itself was asked both times whether it has loaded the change.
    assert written["confirmed"]
    assert removed["confirmed"]
    assert [text for text in written.get("warnings", []) if "not_confirmed" in text] == []


def test_what_containerd_has_loaded_counts(host, configured, configure, nets, work):
    """It notices a file that leaves the directory, but not one that is moved into it."""
    network = nets / "10-pwrpods.conflist"
    quiet = nets / "10-pwrquiet.conflist"
    (work / "quiet").write_text(network.read_text().replace('pwrpods"', 'pwrquiet"'))
    try:
        network.rename(work / "kept")
        wait_until(lambda: not configure("containerd")["configured"][0]["ready"])
        (work / "quiet").rename(quiet)
        options = {"runtime": ["containerd"], "configure": {"wait": 1}, "ensure_effective": "pwrquiet"}
        expected = host.fail("cni_conf", networks=[], **options)
        unconfirmed = host.run("cni_conf", networks=[{"name": "pwrabsent", "state": "absent"}])
    finally:
        quiet.unlink()
        (work / "kept").rename(network)
        # containerd notices a removal.
        (nets / "neutral").touch()
        (nets / "neutral").unlink()
    assert expected["code"] == "not_loaded"
    assert "has not loaded the network 'pwrquiet' within 1 s" in expected["msg"]
    assert not unconfirmed["changed"]
    assert not unconfirmed["confirmed"]
    warnings = [text for text in unconfirmed["warnings"] if re.search("has loaded none .* instead of pwrquiet", text)]
    assert len(warnings) == 1


def test_podman_finds_the_network(host, configured, configure, configurations):
    before = containerd()
    results = configure("podman", lambda module, **options: host.change(module, configurations, **options))
    assert results.check["configured"] == results.run["configured"]
    configure("podman", ensure_effective="pwrpods")
    assert "pwrpods" in sh("podman network ls --format '{{.Name}}'").splitlines()
    assert containerd() == before
