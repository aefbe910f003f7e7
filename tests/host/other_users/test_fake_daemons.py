# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A user starts a setuid program with the name and the arguments of a daemon. Root is not led by that."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh, wait_until
from ansible_collections.podwire.cni.tests.host.networks import host_local, network
from ansible_collections.podwire.cni.tests.host.other_users.user import User

CURL = "/usr/bin/curl"
MADE = Path("/etc/podwire-made")
APPS = network("pwuapps", {"type": "ptp", "ipam": host_local("10.94.0.0/24")}, version="0.4.0")
ATTACHMENT = {"network": "pwuapps", "container_id": "pwu", "netns": "/run/netns/pwu"}
# Their owners would write these files again.
OWNED = '{"cniVersion": "0.3.1", "name": "calico", "plugins": [{"type": "calico"}]}'


@pytest.fixture
def conf_dir():
    path = Path("/etc/cni/net.d")
    path.mkdir(parents=True)
    (path / "20-calico.conflist").write_text(OWNED)
    yield path
    shutil.rmtree(path.parent)


@pytest.fixture
def user():
    made = User(Path("/run/podwire-user"))
    yield made
    made.end()
    shutil.rmtree(made.home)
    MADE.unlink(missing_ok=True)


@pytest.fixture
def sbin():
    """The first directory in PATH, in which programs stand for CRI-O and Nomad."""
    sh("mount -t tmpfs -o mode=0755 podwire-user /usr/local/sbin; mkdir -p /etc/crio/crio.conf.d /etc/nomad.d")
    for name in ("crio", "nomad"):
        shutil.copy("/bin/true", f"/usr/local/sbin/{name}")
    Path("/etc/nomad.d/nomad.hcl").write_text("client {\n  enabled = true\n}\n")
    yield Path("/usr/local/sbin")
    sh("umount /usr/local/sbin; rm -r /etc/crio /etc/nomad.d")


@pytest.fixture
def host(host, conf_dir, generations, sbin):
    host = host.with_defaults(conf_dir=str(conf_dir), bin_dirs=[str(generations["new"])])
    Path("/etc/crio/crio.conf").write_text(f'[crio.network]\nplugin_dirs = ["{generations["new"]}"]\n')
    host.run("cni_conf", networks=[APPS])
    sh("ip netns add pwu")
    yield host
    host.run("cni_attach", attachments=[{**ATTACHMENT, "state": "absent"}])
    sh("ip netns delete pwu; rm -rf /var/lib/podwire /var/lib/cni")


@pytest.fixture
def daemon(user, sbin):
    """Return a function that starts a program of root, of any name and with any arguments, in the user's directory."""

    def start(name, *words):
        shutil.copy("/bin/bash", sbin / name)
        # The arguments after the name of the script are what bash leaves to it.
        (user.home / "agent").write_text("touch started; read -r line")
        user.run([str(sbin / name), "agent", *words])
        wait_until((user.home / "started").exists)
        (user.home / "started").unlink()

    return start


def prepare(user):
    """Put into his directory what a daemon could be made to read or write."""
    (user.home / "curlrc").write_text(f'url = "file:///etc/passwd"\noutput = "{MADE}"\n')
    (user.home / "config.toml").write_text("version = 2\n")
    (user.home / "etc").mkdir()
    (user.home / "net.d").mkdir()
    (user.home / "net.d" / "10-x.conflist").write_text(json.dumps({"name": "x", **APPS["conflist"]}))
    (user.home / "etc" / "a.hcl").write_text(f'client {{\n enabled = true\n cni_config_dir = "{user.home}/net.d"\n}}\n')
    (user.home / "etc" / "a.conf").write_text(f'[crio.network]\nnetwork_dir = "{user.home}/net.d"\n')
    for name in ("99-podwire-cni.hcl", "99-podwire-cni.conf"):
        (user.home / "etc" / name).symlink_to(MADE)


def fake_daemons(user):
    """Start one for each daemon that has arguments with paths; su's own arguments come first."""
    prepare(user)
    socket = user.listen("containerd.sock")
    net = str(user.home / "net.d")
    etc = str(user.home / "etc")
    endless = ["--network-plugin=cni", f"--cni-conf-dir={net}", f"--cni-bin-dir={user.home}"]
    user.start("containerd", [CURL, "-c", str(user.home / "curlrc"), "root"])
    user.start("containerd", ["containerd", "-c", "curlrc", "root"])
    user.start("containerd-shim-runc-v2", ["containerd-shim-runc-v2", "root", "--", "-address", socket])
    user.start("kubelet", [CURL, "root", "--", *endless])
    user.start("crio", [CURL, "root", "--", "--config-dir", etc, "--listen", socket, "--cni-config-dir", net])
    user.start("nomad", [CURL, "root", "agent", "--", "-config", etc, "-cni-config-dir", net])
    user.start("buildkitd", [CURL, "root", "--", "--config", f"{etc}/a.conf", "--oci-cni-config-path", f"{net}/x"])
    user.start("cri-dockerd", [CURL, "root", "--", *endless])
    user.start("mesos-agent", [CURL, "root", "--", f"--network_cni_config_dir={net}"])
    for name in ("calico-node", "firewalld", "k3s"):
        user.start(name, [name, "root"])


def runtimes(*names):
    return {"runtime": list(names), "configure": {"state": "present"}}


RUNTIMES = runtimes("crio", "nomad")
CALLS = [
    (
        "cni_info",
        {
            "gather": [
                *("conf", "plugins", "attachments", "leases", "kernel", "audit", "garbage"),
                "runtime",
                "readiness",
            ]
        },
    ),
    ("cni_conf", {"networks": [APPS]}),
    ("cni_conf", {"networks": [APPS], **RUNTIMES}),
    ("cni_conf", {"networks": [{"name": "calico", "state": "absent"}], "force": True}),
    ("cni_host", {"networks": {"networks": [APPS]}, "runtime": RUNTIMES}),
    ("cni_gc", {"allow_empty": True, "min_age": "0"}),
    ("cni_attach", {"attachments": [ATTACHMENT]}),
    ("cni_smoke", {"networks": ["pwuapps"]}),
]


@pytest.mark.parametrize(("module", "arguments"), CALLS, ids=[f"{name}-{len(str(one))}" for name, one in CALLS])
def test_nothing_of_a_user_is_executed_read_written_or_connected_to(host, user, module, arguments):
    alone = host.run(module, check_mode=True, **arguments)
    fake_daemons(user)
    user.watch()
    check = host.run(module, check_mode=True, **arguments)
    run = host.run(module, **arguments)
    assert user.used() == []
    assert not MADE.exists()
    assert str(user.home) not in json.dumps([check, run])
    for key in ("actions", "effective", "conf", "runtime", "readiness"):
        assert check.get(key) == alone.get(key), key


def test_a_shim_of_a_user_does_not_keep_garbage_from_being_collected(host, user):
    user.start("containerd-shim-runc-v2", ["containerd-shim-runc-v2", "root", "--", "-address", user.listen("a.sock")])
    user.watch()
    result = host.run("cni_gc", allow_empty=True, min_age="0")
    assert [row["source"] for row in result["live"]["sources"]] == ["netns"]
    assert user.used() == []


@pytest.mark.parametrize("by_link", [False, True])
def test_a_path_in_a_directory_of_a_user_is_not_used_although_a_daemon_of_root_names_it(
    host, user, daemon, sbin, by_link
):
    prepare(user)
    where = user.home
    if by_link:
        where = sbin / "link"
        where.symlink_to(user.home)
    daemon("containerd", "--config", f"{where}/config.toml" if by_link else "config.toml")
    daemon("crio", "--config-dir", f"{where}/etc", "--cni-config-dir", f"{where}/net.d", "--listen", f"{where}/a.sock")
    daemon("nomad", "-config", f"{where}/etc", f"-cni-config-dir={where}/net.d")
    daemon("buildkitd", "--config", f"{where}/config.toml", "--oci-cni-config-path", f"{where}/net.d/10-x.conflist")
    user.watch()
    rows = host.run("cni_info", gather=["runtime", "readiness"])["runtime"]
    words = f"the directory {user.home} belongs to user 65534"
    assert {row["runtime"] for row in rows if words in row["reason"]} == {
        *("containerd-2.1", "crio", "nomad", "nomad-bridge", "buildkit")
    }
    for name in ("crio", "nomad"):
        options = {"networks": [APPS], **runtimes(name)}
        refused = host.refuse("cni_conf", lambda: None, "unsafe_permissions", [words], **options)
        assert "chown root" in refused["msg"]
    assert user.used() == []
    assert not MADE.exists()


def test_a_shim_of_root_with_a_socket_of_a_user_stops_the_collection_without_a_connection(host, user, daemon, sbin):
    shutil.copy("/bin/true", sbin / "ctr")
    daemon("containerd-shim-runc-v2", "-address", user.listen("a.sock"))
    user.watch()
    refused = host.refuse("cni_gc", lambda: None, "source_unusable", allow_empty=True, min_age="0")
    assert "belongs to user 65534" in refused["msg"]
    assert user.used() == []


def test_a_link_of_a_user_to_another_socket_of_root_is_not_taken_for_containerd(host, user):
    bound = user.listen("containerd.sock")
    other = Path("/run/podwire-other.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(other))
        listening.listen()
        try:
            Path(bound).rename(user.home / "aside")
            Path(bound).symlink_to(other)
            user.watch()
            (row,) = host.run("cni_gc", allow_empty=True, min_age="0")["live"]["sources"]
            assert row["source"] == "netns"
        finally:
            other.unlink()
