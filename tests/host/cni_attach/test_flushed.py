# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The firewall is flushed under attached containers, with and without the command iptables, and they are repaired.

No repair may leave a container without an address that it had.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh, with_iptables
from ansible_collections.podwire.cni.tests.host.networks import PORTMAP

RACE = """\
#!/bin/sh
{real} "$@"
status=$?
case "$*" in
  *"-N CNI-ADMIN"*)
    mkdir {once} 2>/dev/null || exit $status
    echo "iptables v1.8.9 (nf_tables):  CHAIN_ADD failed (File exists): chain CNI-ADMIN" >&2
    exit 4
    ;;
esac
exit $status
"""

ADDED, REPAIRED, NONE, DELETED = (("added", None), ("repaired", None), ("none", None), ("deleted", None))


@pytest.fixture(params=["nft", "legacy"])
def kind(request):
    """The kind of iptables."""
    yield request.param
    flush(request.param)


def flush(kind):
    sh("nft flush ruleset")
    if kind == "legacy":
        sh("for table in nat filter; do iptables-legacy -t $table -F; iptables-legacy -t $table -X; done")


@contextmanager
def no_iptables():
    """Remove the command iptables, not iptables-nft and iptables-legacy, as long as this lasts."""
    sh("cd /etc/alternatives; mv iptables iptables.kept; mv ip6tables ip6tables.kept")
    try:
        assert shutil.which("iptables") is None
        yield
    finally:
        sh("cd /etc/alternatives; mv iptables.kept iptables; mv ip6tables.kept ip6tables")


@pytest.fixture
def paths(work, kind):
    """Values of PATH by what they have: iptables of the kind, one that loses a race, none, or one that fails."""
    folders = {name: work / f"path-{name}" for name in ("kind", "race", "broken")}
    of_kind = with_iptables(kind, folders["kind"])
    for name in ("race", "broken"):
        folders[name].mkdir()
    for family in ("iptables", "ip6tables"):
        (folders["broken"] / family).symlink_to("/bin/false")
    # It says, the first time, that another process has just made the chain CNI-ADMIN.
    race = folders["race"] / "iptables"
    race.write_text(RACE.format(real=folders["kind"] / "iptables", once=work / "lost"))
    race.chmod(0o755)
    usual = os.environ["PATH"]
    return {
        "kind": of_kind,
        "race": f"{folders['race']}:{of_kind}",
        "none": usual,
        "broken": f"{folders['broken']}:{usual}",
    }


@pytest.fixture
def attachments(host, generation, bridge, write_network):
    """Containers on all kinds of networks that the generation of plugins has."""
    made = []
    backends = [None, "iptables", "nftables"] if generation == "new" else [None]
    for length in (1, 3):
        for backend in backends:
            index = len(made)
            name = f"pwa-flush{index}"
            plugins = [
                bridge(name, f"10.80.{index}.0/24", isGateway=True, ipMasq=True),
                PORTMAP,
                {"type": "firewall"},
            ]
            if backend:
                plugins[0]["ipMasqBackend"] = backend
            write_network(name, plugins[:length])
            sh(f"ip netns add {name}; ip -n {name} link set lo up")
            made.append({"network": name, "container_id": name, "netns": name})
            if length > 1:
                mapping = {"hostPort": 8000 + index, "containerPort": 80, "protocol": "tcp"}
                made[-1]["capability_args"] = {"portMappings": [mapping]}
    return made


@pytest.fixture
def outcomes(host, attachments, paths):
    """Return a function that runs the module for all containers, and returns the different outcomes."""

    def run(path, state="present", check_mode=False):
        result = host.attempt(
            "cni_attach",
            attachments=[{**attachment, "state": state} for attachment in attachments],
            environment={"PATH": paths[path]},
            check_mode=check_mode,
            on_drift="repair",
            parallel=1,
        )
        return {(row["action"], row["error"] and row["error"]["code"]) for row in result["attachments"]}

    return run


@pytest.fixture
def connected(attachments):
    """Return a function that tells whether all containers have their addresses."""

    def look():
        return all(sh(f"ip -n {one['netns']} -4 -o address show eth0") for one in attachments)

    return look


@pytest.fixture
def repair(outcomes, connected):
    """Return a function that repairs twice, in check mode too: then nothing is left to do."""

    def run():
        assert outcomes("kind", check_mode=True) == {REPAIRED}
        assert outcomes("kind") == {REPAIRED}
        assert connected()
        assert outcomes("kind") == {NONE}
        assert outcomes("kind", check_mode=True) == {NONE}

    return run


def test_a_flushed_firewall_is_repaired(kind, generation, outcomes, connected, repair, work, forget_footprints):
    # A race is lost, and the attachments are made.
    assert outcomes("race") == {ADDED}
    assert (work / "lost").exists()
    flush(kind)
    repair()

    # What puts rules back in place is no plugin, so that it needs no iptables in PATH.
    flush(kind)
    with no_iptables():
        assert outcomes("none") == {REPAIRED}
    flush(kind)
    assert outcomes("broken") == {REPAIRED}
    assert outcomes("kind") == {NONE}

    # Without footprints, they are attached again. The plugins that use nft do not need iptables.
    forget_footprints()
    repaired = {REPAIRED} if generation == "new" else set()
    flush(kind)
    with no_iptables():
        assert outcomes("none") == {("failed", "missing_tool"), *repaired}
    assert connected()
    flush(kind)
    assert outcomes("broken") == {("failed", "tool_failed"), *repaired}
    assert connected()
    flush(kind)
    repair()

    flush(kind)
    assert outcomes("kind", state="absent") == {DELETED}
