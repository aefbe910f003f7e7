# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks bootstrap and teardown: an empty host, one with files of others, one with several networks in a pod."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.host.host import sh
from ansible_collections.podwire.cni.tests.host.networks import DEFAULT_ROUTE, PORTMAP, bridge, conflist, host_local

pytestmark = pytest.mark.usefixtures("empty_host")

# What is on this host of all that bootstrap may touch and teardown has to leave as it was, a thing a line. Not among it
# are directories, which stay, what the collection remembers, and the notes of host-local on addresses given before. The
# base chains of the plugins stay; nothing in them may speak of a network, a container or an address.
STATE = r"""
for directory in /etc/cni /opt/cni /var/lib/cni /var/lib/podwire/cni; do
  [ -d "$directory" ] || continue
  find "$directory" -type f ! -name lock ! -name 'last_reserved_ip.*' -printf '%p %m %U %G ' \
    -exec sh -c 'sha256sum <"$1"' - {} \;
done | sort
ip netns list
ip -oneline link show | awk '{ print $2 }'
ip -oneline address show scope global | awk '{ print $2, $4 }'
iptables-save | grep -e 'name:' -e 'id:' -e '10\.8[89]\.' || true
"""
# The bridge plugin never removes its bridges.
BRIDGES = {"whole0:", "whole0 10.88.0.1/24", "whole1:", "whole1 10.90.0.1/24"}
NEEDED = "the plugins that would be removed: %s (%s) needs ptp. Nothing was changed."
FOREIGN = '{"cniVersion": "0.4.0",  "name": "%s", "plugins": [{"type": "foreign"}]}\n'
GUEST = '{"cniVersion": "1.0.0", "name": "guest", "plugins": [{"type": "ptp"}]}\n'


WHOLE = conflist(
    bridge("whole0", ipMasq=True, ipam=host_local("10.88.0.0/24", routes=DEFAULT_ROUTE)),
    {**PORTMAP, "snat": True},
    {"type": "firewall"},
    {"type": "tuning", "mtu": 1400},
)
OTHER = conflist({"type": "ptp", "ipam": host_local("10.89.0.0/24")})


def site(plugins, pods=False):
    """Return the inventory of a host with two networks and two containers, one of them a pod with a second network."""
    arguments = {"portMappings": [{"hostPort": 8088, "containerPort": 80, "protocol": "tcp"}]}
    variables = {
        "cni_plugins_src": str(plugins),
        "cni_plugins_remote_src": True,
        "cni_plugins_names": ["bridge", "firewall", "host-local", "loopback", "portmap", "ptp", "tuning"],
        "cni_networks": [
            {"name": "whole", "conflist": WHOLE},
            {"name": "other", "priority": 20, "file": "20-other.conflist", "conflist": OTHER},
        ],
        "cni_netns": ["whole-a", "whole-b"],
        "cni_attachments": [
            {"network": "whole", "container_id": "a", "netns": "whole-a", "capability_args": arguments},
            {"network": "whole", "container_id": "b", "netns": "whole-b"},
        ],
        "cni_teardown_netns": ["whole-a", "whole-b"],
    }
    if pods:
        arguments["io.kubernetes.cri.pod-annotations"] = {"k8s.v1.cni.cncf.io/networks": "whole-storage"}
        storage = conflist(bridge("whole1", "10.90.0.0/24"))
        variables.update(
            cni_plugins_builtin=["podwire-multinet"],
            cni_networks_multinet="whole",
            cni_pod_networks_dir="/etc/cni/multinet/net.d",
            cni_pod_networks=[{"name": "whole-storage", "file": "10-storage.conflist", "conflist": storage}],
        )
    return {"all": {"hosts": {"here": {"ansible_connection": "local"}}, "vars": variables}}


def state():
    return set(sh(STATE).splitlines())


def changed(run):
    return [result["changed"] for result in run.of("podwire.cni.cni_host")]


def tear_down(controller, before):
    """Check and run teardown, which must do what was predicted and leave what was there *before*, and run it again."""
    done = state()
    check = controller.run("teardown", "--check", "--diff", cni_hosts="here")
    assert state() == done
    run = controller.run("teardown", cni_hosts="here")
    assert run.plan == check.plan
    assert state() - BRIDGES == before
    again = controller.run("teardown", "--limit", "here")
    assert not any(entry.result.get("changed") for entry in again.results)
    return run


def refuse_to_tear_down(controller, guest, runtime):
    """A network of others needs a plugin that teardown would remove, for a *runtime* that takes it."""
    guest.write_text(GUEST)
    sh(f"mount -t tmpfs -o mode=0755 podwire-play /usr/local/sbin; cp /bin/true /usr/local/sbin/{runtime}")
    try:
        refused = controller.run("teardown", status=2, cni_hosts="here")
    finally:
        sh("umount /usr/local/sbin")
    assert NEEDED % (guest, runtime) in " ".join(refused.stdout.split())
    guest.unlink()


def foreign(folder, **files):
    """Put configurations of others in *folder*: the names of files without suffix, and of networks."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, network in files.items():
        path = folder / f"{file.strip('_').replace('_', '-')}.conflist"
        path.write_text(FOREIGN % network)
        path.chmod(0o640)


def test_an_empty_host(controller, generations):
    controller = controller(site(generations["old"]))
    before = state()

    check = controller.run("bootstrap", "--check", "--diff", cni_hosts="here")
    assert state() == before
    assert changed(check) == [True]
    # One call, and no doubts about what it would install.
    assert [entry.action for entry in check.results if entry.action.startswith("podwire.")] == ["podwire.cni.cni_host"]
    assert "[WARNING]" not in check.stdout + check.stderr
    for path in ("/etc/cni", "/opt/cni", "/var/lib/podwire", "/run/netns/whole-a"):
        assert not Path(path).exists()

    run = controller.run("bootstrap", cni_hosts="here")
    assert run.plan == check.plan
    assert changed(run) == [True]
    sections = [step["section"] for step in run.plan]
    assert list(dict.fromkeys(sections)) == ["plugins", "networks", "netns", "attachments"]
    (result,) = run.of("podwire.cni.cni_host")
    for address in ("10.88.0.1", result["attachments"]["attachments"][-1]["ips"][-1].partition("/")[0]):
        sh(f"ip netns exec whole-a ping -c 1 -W 5 {address}")

    done = state()
    for options in (["--check", "--diff", "--limit", "here"], ["--limit", "here"]):
        again = controller.run("bootstrap", *options)
        assert changed(again) == [False]
        assert "changed=0 " in again.stdout
        assert state() == done

    assert len(tear_down(controller, before).plan) > 10


def test_teardown_twice_in_a_run_removes_what_came_in_between(controller):
    controller = controller({"all": {"hosts": {"here": {"ansible_connection": "local"}}}})
    between = {"networks": [{"name": "other", "conflist": OTHER}], "validate": ["syntax", "schema"]}
    teardown = {"import_playbook": "podwire.cni.teardown"}
    play = {"hosts": "here", "gather_facts": False, "tasks": [{"podwire.cni.cni_conf": between}]}
    path = controller.folder / "twice.yml"
    path.write_text(json.dumps([teardown, play, teardown]))
    controller.run(str(path), cni_hosts="here")
    assert list(Path("/etc/cni/net.d").iterdir()) == []


@pytest.mark.parametrize("command", [("bootstrap",), ("bootstrap", "--check"), ("teardown",)])
def test_nobody_is_named(command, controller, generations):
    refused = controller(site(generations["old"])).run(*command, status=4)
    assert "name them: -e cni_hosts=PATTERN or --limit PATTERN" in refused.stderr


def test_a_host_with_files_of_others(controller, generations):
    controller = controller(site(generations["new"]))
    bin_dir, conf_dir = Path("/opt/cni/bin"), Path("/etc/cni/net.d")
    foreign(conf_dir, _20_other="other", _90_foreign="foreign")
    bin_dir.mkdir(parents=True)
    for name in ("bridge", "foreign"):
        shutil.copy(generations["new"] / "loopback", bin_dir / name)
        (bin_dir / name).chmod(0o750)
    before = state()

    assert changed(controller.run("bootstrap", cni_hosts="here")) == [True]
    done = state()
    replaced = sorted(line.split()[0] for line in before - done)
    assert replaced == ["/etc/cni/net.d/20-other.conflist", "/opt/cni/bin/bridge"]
    refuse_to_tear_down(controller, conf_dir / "95-guest.conflist", "nerdctl")
    assert state() == done
    # No runtime takes it.
    (conf_dir / "95-guest.conflist").write_text(GUEST)
    before = before | state() - done
    tear_down(controller, before)


def test_the_outcome_has_the_warnings_of_hosts(controller, generations):
    controller = controller(site(generations["new"]))
    sh("ip link add whole9 type bridge; ip address add 10.89.0.9/24 dev whole9")
    try:
        # Real processes: what they warn of has another form.
        check = controller.run("bootstrap", "--check", real=True, cni_hosts="here")
    finally:
        sh("ip link delete whole9")
    [line] = [line for line in check.stdout.splitlines() if "[host_overlap]" in line]
    assert line.strip().startswith('"here: [host_overlap]')


def test_a_failed_download_is_told_in_few_words_and_without_consequences(controller, generations):
    controller = controller(site(generations["new"]))
    source = {"cni_plugins_src": "https://192.0.2.1/cni-plugins.tgz", "cni_plugins_checksum": "sha256:" + 64 * "0"}
    source["cni_plugins_remote_src"] = False
    run = controller.run("bootstrap", status=2, cni_hosts="here", **source)
    [line] = [line for line in run.stdout.splitlines() if line.startswith("fatal: [here]")]
    assert '"code": "download_failed"' in line
    # With an empty result of each other section.
    assert len(line) <= 1_500
    assert "missing_plugin" not in run.stdout + run.stderr


def test_several_networks_in_a_pod(controller, generations):
    controller = controller(site(generations["new"], pods=True))
    pods = Path("/etc/cni/multinet/net.d")
    foreign(pods, _10_storage="whole-storage", _90_foreign="foreign")
    before = state()

    controller.run("bootstrap", cni_hosts="here")
    for gateway in ("10.88.0.1", "10.90.0.1"):
        sh(f"ip netns exec whole-a ping -c 1 -W 5 {gateway}")
    done = state()
    assert [line for line in done if line.startswith("/var/lib/cni/multinet/pods/a:eth0 ")]
    assert [line.split()[0] for line in before - done] == ["/etc/cni/multinet/net.d/10-storage.conflist"]
    refuse_to_tear_down(controller, pods / "95-guest.conflist", "crio")
    run = tear_down(controller, before)
    assert "pod_networks" in {step.get("section") for step in run.plan}
