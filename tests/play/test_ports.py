# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The ports of the page "Coming from another role", each on a host as the old role has left it."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
import yaml

from ansible_collections.podwire.cni.tests.host.host import COLLECTION, sh

PAGE = (COLLECTION / "docs" / "howto" / "coming-from.md").read_text(encoding="utf-8")
SECTION = re.compile(
    r"^## (.+)\n(?:(?!## ).*\n)*?### After\n(?:(?!## ).*\n)*?```yaml\n((?:(?!```).*\n)*)```$", re.MULTILINE
)
AFTER = {name: yaml.safe_load(text) for name, text in SECTION.findall(PAGE)}
LOOPBACK = '{"cniVersion": "0.2.0", "name": "lo", "type": "loopback"}'
MACVLAN = """{"cniVersion": "0.4.0", "name": "mynet", "type": "macvlan", "master": "eth1", "hairpinMode": true,
 "ipam": {"type": "host-local", "subnet": "10.233.64.0/24",
 "routes": [{"dst": "0.0.0.0/0"}], "gateway": "10.233.64.1"}}"""
BRIDGE = """{"name": "mynet", "cniVersion": "0.4.0", "plugins": [{"type": "bridge", "bridge": "cni0",
 "isGateway": true, "ipMasq": true, "ipam": {"type": "host-local", "routes": [{"dst": "0.0.0.0/0"}],
 "ranges": [[{"subnet": "10.75.0.0/24"}]]}}]}"""
# What each role leaves, with plugins of another release in /opt/cni/bin: $1 has them.
UNPACKED = "mkdir -p /opt/cni/bin /etc/cni/net.d; cp --no-preserve=ownership $1/* /opt/cni/bin\n"
KUBE = UNPACKED + "useradd --system kube; chown -R kube /opt/cni/bin /etc/cni\n"
LEFT = {
    "kubespray: cni": KUBE,
    "kubespray: macvlan": f"""{KUBE}
        ip link add eth1 type veth peer name eth1peer
        ip link add link eth1 mac0 type macvlan mode bridge; ip address add 10.233.64.1/24 dev mac0
        ip link set eth1 up; ip link set mac0 up
        echo '{MACVLAN}' >/etc/cni/net.d/10-macvlan.conf; echo '{LOOPBACK}' >/etc/cni/net.d/99-loopback.conf""",
    "ansible-nomad": f"{UNPACKED} useradd --system nomad; chown -R nomad:nomad /opt/cni/bin",
    "githubixx.cni": f"{UNPACKED} mkdir -p /tmp/cni_tmp; cp $1/* /tmp/cni_tmp",
    "vexxhost.containers.cni_plugins": f"""{UNPACKED}
        echo text >/opt/cni/bin/LICENSE; echo br_netfilter >/etc/modules-load.d/k8s.conf
        mkdir -p /var/lib/downloads; touch /var/lib/downloads/kubernetes-cni-v1.4.0-linux-amd64.tgz""",
    "githubixx.containerd": UNPACKED,
    "Hand-made tasks": f"""{UNPACKED}
        echo text >/opt/cni/bin/README.md; echo '{BRIDGE}' >/etc/cni/net.d/10-mynet.conflist""",
}
CNI_OF_CONTAINERD = """
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/opt/cni/bin"
  conf_dir = "/etc/cni/net.d"
"""
GONE = """
set +e
ip link delete mac0; ip link delete eth1; userdel kube; userdel nomad
rm -rf /tmp/cni_tmp /var/lib/downloads /etc/modules-load.d/k8s.conf
"""
PLACES = "/etc/cni /opt/cni /tmp/cni_tmp /var/lib/podwire /etc/modules-load.d"
LISTED = f"find {PLACES} -printf '%p %m %u %g %C@ %s\\n' 2>/dev/null || true"
CONTENTS = "find /etc/cni /opt/cni -type f -exec sha256sum {} + | sort"
FILES = {
    "kubespray: macvlan": ["10-macvlan.conf.podwire-aside", "10-mynet.conflist", "99-loopback.conf.podwire-aside"],
    "githubixx.containerd": ["10-pods.conflist"],
    "Hand-made tasks": ["10-mynet.conflist"],
}


@pytest.fixture
def port(controller, generations, empty_host, request):
    """Return a function that runs a port, or another playbook, on the host as the old role has left it."""
    controller = controller({"nodes": {"hosts": {"here": {"ansible_connection": "local"}}}})
    files = controller.folder / "files"
    files.mkdir()
    sh(f"tar -I 'gzip -1' -cf {files}/cni-plugins.tgz --owner=root --group=root -C {generations['new']} .")
    name = request.param
    (controller.folder / "site.yml").write_text(json.dumps(AFTER[name]))
    subprocess.run(["bash", "-euc", LEFT[name], "-", str(generations["old"])], check=True)
    site = str(controller.folder / "site.yml")
    yield lambda *options, playbook=site, **variables: controller.run(playbook, *options, **variables)
    sh(GONE, check=False)


def test_every_port_of_the_page_is_tested():
    assert list(AFTER) == list(LEFT)
    assert PAGE.count("### After") == len(LEFT)


def check_run_and_run_again(port):
    """Return what the run has said."""
    left = sh(LISTED)
    check = port("--check", "--diff")
    assert sh(LISTED) == left, "the check changed the host"
    run = port()
    # A task before the role makes directories.
    assert run.plan == [step for step in check.plan if step["kind"] != "make_directory"]
    assert re.search(r"\bchanged=[1-9]", run.stdout)
    done = sh(LISTED)
    again = port()
    assert re.search(r"\bchanged=0 ", again.stdout), again.stdout
    assert sh(LISTED) == done
    assert "is a variable of" not in run.stderr
    return run


IN_GATE = ("kubespray: macvlan", "ansible-nomad")
PORTS = [
    name if name in IN_GATE else pytest.param(name, marks=pytest.mark.full) for name in LEFT if "containerd" not in name
]


@pytest.mark.parametrize("port", PORTS, indirect=True)
def test_a_port_is_checked_run_and_run_again(port, host, request):
    name = request.node.callspec.params["port"]
    left = sh(CONTENTS)
    check_run_and_run_again(port)
    conf_dir = AFTER[name][0].get("vars", {}).get("cni_conf_dir", "/etc/cni/net.d")
    info = host.run("cni_info", conf_dir=conf_dir, bin_dirs=["/opt/cni/bin"], gather=["conf", "plugins"])
    assert info["problems"] == []
    others = {"LICENSE", "README.md"}
    assert {row["managed"] and not row["edited"] for row in info["plugins"] if row["name"] not in others} == {True}
    if name in FILES:
        assert sorted(sh("ls /etc/cni/net.d").split()) == FILES[name]
    port(playbook="teardown", cni_hosts="nodes", cni_conf_dir=conf_dir)
    assert sh(CONTENTS) == left


@pytest.mark.full
@pytest.mark.parametrize("port", ["githubixx.containerd"], indirect=True)
def test_containerd_loads_what_the_port_writes_and_its_configuration_stays(runtimes, port):
    config = "/etc/containerd/config.toml"
    sh(f"cat >>{config} <<'EOF'{CNI_OF_CONTAINERD}EOF")
    before = sh(f"cat {config}")
    runtimes("stop")
    runtimes("start")
    run = check_run_and_run_again(port)
    assert sh(f"cat {config}") == before
    (result,) = run.of("podwire.cni.cni_host")
    assert [(row["ready"], row["networks"]) for row in result["loaded"]["configured"]] == [(True, ["pods"])]
