# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh

pytestmark = pytest.mark.parametrize("generation", ["new"], indirect=True)

WEB = {"network": "pwatwo", "container_id": "web", "netns": "pwa-web"}


@pytest.mark.parametrize("force", [False, True])
def test_the_namespace_of_the_host_is_refused(host, state, work, force):
    (work / "own").symlink_to("/proc/1/ns/net")
    for path in ("/proc/1/ns/net", f"{work}/own"):
        words = ["pwatwo/web/eth0", path, "the host's own network namespace"]
        host.refuse("cni_attach", state, "host_netns", words, attachments=[{**WEB, "netns": path}], force=force)


@pytest.mark.parametrize(
    ("attachment", "options", "code"),
    [
        ({"network": "nosuch"}, {}, "missing_network"),
        ({}, {"conf_dir": "/nosuch/net.d"}, "missing_conf_dir"),
        ({"netns": "pwa-nosuch"}, {}, "missing_netns"),
        # A file, as `ip netns` leaves it where the namespace was unmounted.
        ({"netns": "/etc/hostname"}, {}, "missing_netns"),
        ({}, {"bin_dirs": ["/nosuch/bin"]}, "missing_plugin"),
    ],
)
def test_a_check_warns_of_what_is_missing_and_a_run_fails(host, attach, attachment, options, code):
    (row,) = attach({**WEB, **attachment}, **options, check_mode=True)["attachments"]
    assert row["action"] == "added"
    assert [warning["code"] for warning in row["warnings"]] == [code]
    failing = host.fail("cni_attach", attachments=[{**WEB, **attachment}], **options)
    assert failing["code"] == code
    assert not failing["changed"]


def test_a_lease_that_the_container_has_already(host, attach, leases):
    """The cache was lost, the namespace was made again, and host-local's store stayed."""
    lease = leases / "pwatwo" / "10.67.0.9"
    lease.parent.mkdir(parents=True)
    lease.write_text("web\r\neth0")
    (lease.parent / "10.67.0.8").write_text("other\r\neth0")
    os.utime(lease, (0, 0))
    failing = host.fail("cni_attach", attachments=[WEB])
    assert failing["code"] == "add_failed"
    assert f"{lease} for eth0 of web" in failing["msg"] and "10.67.0.8" not in failing["msg"]
    # What it says is true.
    assert "freed it: run again" in failing["msg"] and not lease.exists()
    assert attach(WEB)["changed"]


@pytest.mark.parametrize(
    ("harm", "cause"),
    [
        ("touch {0}", "is a file, and no directory"),
        ("ln -s nowhere {0}", "is a link to nowhere, which is no directory"),
        ("mkdir {0}; mount -t tmpfs -o ro none {0}", "mounted read-only"),
        ("mkdir {0}; mkfifo {0}/10.67.0.9", "it is a FIFO"),
    ],
)
def test_leases_that_cannot_be_kept(host, state, attach, leases, harm, cause):
    store = leases / "pwatwo"
    store.parent.mkdir(exist_ok=True)
    sh(harm.format(store))
    host.refuse("cni_attach", state, "state_unwritable", ["pwatwo/web/eth0", cause], attachments=[WEB])
    tried = host.fail("cni_smoke", networks=["pwatwo"])
    sh(f"umount -q {store} || true; rm -r {store}")
    assert tried["networks"][0]["error"]["code"] == "state_unwritable"
    assert attach(WEB)["changed"]
