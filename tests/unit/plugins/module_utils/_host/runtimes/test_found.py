# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import re

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import commands
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.processes import Process
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import discover, profiles, reading
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.crio import Crio
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.nomad import Nomad
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.others import Other
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.podman import Podman
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.settings import RuntimeSettings
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

DISTRIBUTIONS = {name: profile.config for name, profile in profiles.PROFILES.items() if profile.config}

# --- CRI-O


def crio(fake_host):
    return Crio.find(fake_host.processes)


def test_crio_is_configured_by_files_drop_ins_and_flags(fake_host):
    fake_host.programs = ["crio"]
    fake_host.prints = {"--version": "crio version 1.30.4"}
    [runtime] = crio(fake_host)
    assert (runtime.name, runtime.version, runtime.conf_dir) == ("crio", "1.30.4", "/etc/cni/net.d")
    fake_host.put("/etc/crio/crio.conf", '[crio.network]\nplugin_dir = "/q"\n')
    assert crio(fake_host)[0].bin_dirs == ["/opt/cni/bin", "/q"]
    fake_host.put("/etc/crio/crio.conf", '[crio.network]\nnetwork_dir = "/a/"\nplugin_dirs = ["/p/"]\n')
    assert (crio(fake_host)[0].conf_dir, crio(fake_host)[0].bin_dirs) == ("/a", ["/p"])
    fake_host.put("/etc/crio/crio.conf.d/20-b", '[crio.network]\nnetwork_dir = "/b"\ncni_default_network = "apps"\n')
    fake_host.put("/etc/crio/crio.conf.d/10-c/x.conf", '[crio.network]\nnetwork_dir = "/c"\nplugin_dir = "/q"\n')
    [runtime] = crio(fake_host)
    assert (runtime.conf_dir, runtime.bin_dirs, runtime.default_network) == ("/b", ["/p", "/q"], "apps")
    fake_host.run("crio", "--cni-config-dir=/d", "--cni-plugin-dir", "/r", "--cni-plugin-dir=/s")
    [runtime] = crio(fake_host)
    assert (runtime.conf_dir, runtime.bin_dirs, runtime.evidence) == ("/d", ["/r", "/s"], "a running crio")


def test_crio_reads_the_files_that_its_command_line_names(fake_host):
    fake_host.put("/srv/x.conf", '[crio.network]\nnetwork_dir = "/x"\n')
    fake_host.put("/srv/d/y.conf", '[crio.network]\ncni_default_network = "y"\n')
    fake_host.run("crio", "-c", "{root}/srv/x.conf", "-d", "{root}/srv/d")
    [runtime] = crio(fake_host)
    assert (runtime.conf_dir, runtime.default_network, runtime.version) == ("/x", "y", "")


def test_openshift_is_crio_with_a_directory_of_its_own(fake_host):
    fake_host.programs = ["crio"]
    fake_host.put("/etc/crio/crio.conf.d/00-default", '[crio.network]\nnetwork_dir = "/etc/kubernetes/cni/net.d/"\n')
    assert crio(fake_host)[0].name == "openshift"


# --- podman


def podman(fake_host, version="4.3.1"):
    fake_host.programs = ["podman"]
    fake_host.prints = {"--version": f"podman version {version}"}
    [runtime] = Podman.find([])
    return runtime


def test_podman_4_uses_cni_if_told_so(fake_host):
    settings = '[network]\nnetwork_backend = "cni"\ncni_plugin_dirs = ["/usr/lib/cni"]\n'
    fake_host.put("/etc/containers/containers.conf", settings)
    fake_host.put(
        "/etc/containers/containers.conf.d/50.conf",
        '[network]\nnetwork_config_dir = "/n"\ndefault_network = "d"\ndefault_subnet = "fd00::/64"\n',
    )
    fake_host.put("/etc/containers/containers.conf.d/60.bak", '[network]\ndefault_network = "e"\n')
    runtime = podman(fake_host)
    assert (runtime.reads, runtime.conf_dir, runtime.bin_dirs) == (True, "/n", ["/usr/lib/cni"])
    assert (runtime.default_network, runtime.profile.own.split()[-1]) == ("d", "fd00::/64")
    ipam = runtime.built_in.chain[0]["ipam"]
    assert (ipam["ranges"], ipam["routes"]) == ([[{"subnet": "fd00::/64"}]], [{"dst": "::/0"}])
    assert runtime.notes == ["it uses CNI, because of network_backend"]


@pytest.mark.parametrize(
    ("version", "settled", "netavark", "reads", "words"),
    [
        ("3.4.4", None, True, True, None),
        ("4.3.1", "cni", True, True, "/defaultNetworkBackend"),
        ("4.3.1", "netavark", False, False, "/defaultNetworkBackend"),
        ("4.3.1", None, False, True, "netavark is not installed"),
        ("4.3.1", None, True, False, "unless it finds containers"),
        ("4.3.1", "nonsense", False, True, "netavark is not installed"),
        ("5.4.2", None, False, False, "as all releases since 5 do"),
        ("5.4.2", "cni", False, False, "has no CNI, and is configured to use it according to"),
    ],
)
def test_podmans_backend_is_the_one_that_it_has_settled_for(fake_host, version, settled, netavark, reads, words):
    if settled:
        fake_host.put("/var/lib/containers/storage/defaultNetworkBackend", settled)
    if netavark:
        fake_host.put("/usr/libexec/podman/netavark", "")
    if version[0] == "5":
        # Earlier releases have no such lists.
        fake_host.put("/etc/containers/containers.conf", "[engine]\nhelper_binaries_dir = [{append = true}]\n")
    runtime = podman(fake_host, version)
    assert runtime.reads is reads
    assert [words in note for note in runtime.notes] == ([True] if words else [])


@pytest.mark.parametrize(
    ("version", "reads", "words"),
    [
        ("4.9.3", True, ""),
        ("5.4.2", False, "podman 5.4.2 has no CNI"),
        # It may have none: it is not read, and it is not known that it starts no container.
        ("", False, "/usr/bin/podman does not tell its version, and podman 5 has no CNI"),
    ],
)
def test_podman_5_is_told_to_use_what_it_no_longer_has(fake_host, version, reads, words):
    fake_host.put("/etc/containers/containers.conf", '[network]\nnetwork_backend = "cni"\n')
    runtime = podman(fake_host, version)
    assert (runtime.reads, bool(runtime.refuses)) == (reads, version == "5.4.2")
    assert reads or runtime.notes[-1] == f"{words}, and is configured to use it because of network_backend"
    # What it cannot use is not configured, either.
    desired = RuntimeSettings("/net.d", ["/bin"])
    if reads:
        assert runtime.changes(desired)
    else:
        with fails_with("no_cni", words):
            runtime.changes(desired)


def test_podmans_storage_may_be_elsewhere(fake_host):
    fake_host.put("/etc/containers/storage.conf", '[storage]\ngraphroot = "{root}/srv/storage"\n')
    fake_host.put("/srv/storage/defaultNetworkBackend", "cni")
    fake_host.put("/usr/libexec/podman/netavark", "")
    assert podman(fake_host).reads
    assert fake_host.asked == [("/usr/bin/podman", "--version")]


# --- Nomad


def nomad(fake_host):
    return Nomad.find(fake_host.processes)


def test_nomads_client_has_two_ways(fake_host):
    fake_host.programs = ["nomad"]
    assert nomad(fake_host) == []
    fake_host.prints = {"version": "Nomad v1.10.0\nBuildDate 2025-04-09"}
    settings = 'client {\n  enabled = true\n  cni_path = "/a:/b/"\n  cni_config_dir = "/c"\n}\n'
    fake_host.put("/etc/nomad.d/nomad.hcl", settings)
    named, bridge = nomad(fake_host)
    assert (named.name, named.conf_dir, named.bin_dirs) == ("nomad", "/c", ["/a", "/b"])
    assert (bridge.name, bridge.default_network, bridge.bin_dirs) == ("nomad-bridge", "nomad", ["/a", "/b"])
    assert named.notes == bridge.notes == []


def test_later_files_of_nomad_count_more_and_editors_files_do_not(fake_host):
    fake_host.programs = ["nomad"]
    fake_host.put("/etc/nomad.d/a.hcl", 'client { enabled = true cni_config_dir = "/a" }')
    fake_host.put("/etc/nomad.d/b.json", '{"client": {"cni_config_dir": "/b"}}')
    fake_host.put("/etc/nomad.d/.#c.hcl", 'client { cni_config_dir = "/c" }')
    fake_host.put("/etc/nomad.d/nomad.env", "X=1")
    assert nomad(fake_host)[0].conf_dir == "/b"


def test_nomads_command_line_counts_most(fake_host):
    fake_host.put("/srv/a.hcl", 'client { cni_config_dir = "/a" }')
    fake_host.run("nomad", "agent", "-client", "-config={root}/srv/a.hcl", "-cni-config-dir", "/d", "-cni-path=/e")
    fake_host.run("nomad", "logmon")
    named = nomad(fake_host)[0]
    assert (named.conf_dir, named.bin_dirs, named.evidence) == ("/d", ["/e"], "a running nomad")


@pytest.mark.parametrize(
    ("text", "options", "bin_dirs", "codes"),
    [
        ('cni_path = "bin:/b"', [], ["{cwd}/bin", "/b"], ["relative_path"]),
        ('cni_path = "/b"', ["-cni-path", "../x"], ["/x"], ["relative_path"]),
        ('cni_path = "/b"\n cni_config_dir = "net.d"', [], ["/b"], ["relative_path"]),
        ('cni_path = "/a/../b"', [], ["/b"], []),
    ],
)
def test_relative_paths_of_nomad_count_from_its_directory(fake_host, text, options, bin_dirs, codes):
    fake_host.put("/etc/nomad.d/nomad.hcl", f"client {{\n enabled = true\n {text}\n}}")
    fake_host.run("nomad", "agent", "-config", "{root}/etc/nomad.d", *options)
    named, bridge = nomad(fake_host)
    cwd = named.process.cwd.rstrip("/")
    assert named.bin_dirs == bridge.bin_dirs == [path.format(cwd=cwd) for path in bin_dirs] or options
    assert [finding.code for finding in named.findings] == [finding.code for finding in bridge.findings] == codes


def test_a_server_of_nomad_has_no_networks(fake_host):
    fake_host.programs = ["nomad"]
    fake_host.put("/etc/nomad.d/nomad.hcl", "server { enabled = true }")
    assert [runtime.reads for runtime in nomad(fake_host)] == [False, False]


def test_nomad_2_looks_for_plugins_in_two_places(fake_host):
    fake_host.programs = ["nomad"]
    fake_host.prints = {"version": "Nomad v2.0.1"}
    fake_host.put("/etc/nomad.d/nomad.hcl", "client { enabled = true }")
    assert nomad(fake_host)[0].bin_dirs == ["/opt/cni/bin", "/usr/libexec/cni"]


# --- others


def others(fake_host):
    return {runtime.name: runtime for runtime in Other.find(fake_host.processes)}


def test_nerdctl_has_a_file_and_looks_for_an_existing_directory(fake_host):
    fake_host.programs = ["nerdctl"]
    fake_host.prints = {"--version": "nerdctl version 2.1.2"}
    os.makedirs(fake_host.path("/opt/b"))
    runtime = others(fake_host)["nerdctl"]
    assert (runtime.version, runtime.bin_dirs, runtime.folder) == ("2.1.2", [fake_host.path("/opt/b")], "default")
    fake_host.put("/etc/nerdctl/nerdctl.toml", 'cni_path = "/p"\ncni_netconfpath = "/n"\nnamespace = "k8s.io"\n')
    runtime = others(fake_host)["nerdctl"]
    assert (runtime.conf_dir, runtime.bin_dirs, runtime.folder) == ("/n", ["/p"], "k8s.io")
    for namespace in ("../x", "x\\u0000", ".."):
        fake_host.put("/etc/nerdctl/nerdctl.toml", f'namespace = "{namespace}"')
        assert others(fake_host)["nerdctl"].folder == "default"


def test_buildkit_reads_one_file_in_some_modes(fake_host):
    fake_host.programs = ["buildkitd"]
    runtime = others(fake_host)["buildkit"]
    assert (runtime.conf_file, runtime.conf_dir, runtime.reads) == ("/etc/buildkit/cni.json", "/etc/buildkit", True)
    settings = '[worker.oci]\ncniConfigPath = "/x/y.conflist"\ncniBinaryPath = "/b"\n'
    fake_host.put("/etc/buildkit/buildkitd.toml", settings)
    runtime = others(fake_host)["buildkit"]
    assert (runtime.conf_file, runtime.bin_dirs) == ("/x/y.conflist", ["/b"])
    text = '[worker.containerd]\nenabled = true\nnetworkMode = "host"\n[worker.oci]\nenabled = false\n'
    fake_host.put("/etc/buildkit/buildkitd.toml", text)
    assert not others(fake_host)["buildkit"].reads
    fake_host.run("buildkitd", "--containerd-worker-net=cni", "--containerd-cni-config-path=/z.json")
    runtime = others(fake_host)["buildkit"]
    assert (runtime.reads, runtime.conf_file, runtime.evidence) == (True, "/z.json", "a running buildkitd")


def test_cri_dockerd_is_configured_by_flags(fake_host):
    fake_host.run("cri-dockerd", "--network-plugin=kubenet")
    assert others(fake_host) == {}
    fake_host.run("cri-dockerd", "--cni-conf-dir", "relative")
    runtime = others(fake_host)["cri-dockerd"]
    assert runtime.conf_dir == "/etc/cni/net.d" and "not understood" in runtime.notes[0]


def test_firecracker_counts_if_its_directory_is_there(fake_host, monkeypatch):
    fake_host.programs = ["firecracker"]
    monkeypatch.setattr(os.path, "isdir", lambda path: path == "/etc/cni/conf.d")
    assert others(fake_host)["firecracker"].conf_dir == "/etc/cni/conf.d"


def test_multus_is_found_where_it_has_written(fake_host):
    fake_host.put("/net.d/00-multus.conf", "{}")
    fake_host.put("/other/10-a.conf", "{}")
    fake_host.put("/alone/00-multus.conflist", "{}")
    assert discover.multus([fake_host.path("/net.d"), fake_host.path("/alone")]) == []
    fake_host.put("/net.d/10-a.conf", "{}")
    folders = [fake_host.path(name) for name in ("/net.d", "/other", "/net.d")]
    [runtime] = discover.multus([*folders, "/nowhere"])
    assert (runtime.name, runtime.conf_dir) == ("multus", fake_host.path("/net.d"))


@pytest.mark.parametrize(
    ("program", "path", "text", "words", "conf_dir"),
    [
        (
            "crio",
            "/etc/crio/crio.conf",
            "[crio.network\n",
            "crio.conf: it is not understood.* default",
            "/etc/cni/net.d",
        ),
        ("nomad", "/etc/nomad.d/nomad.hcl", "client {\n  x = var.x\n}", "line 2 is not understood", "/opt/cni/config"),
        ("podman", "/etc/containers/containers.conf", "[network]\nnetwork_backend = 1\n", "is not a string", ""),
        ("nerdctl", "/etc/nerdctl/nerdctl.toml", "namespace = [", "not understood", ""),
        ("buildkitd", "/etc/buildkit/buildkitd.toml", "[worker", "not understood", ""),
    ],
)
def test_a_configuration_that_is_not_understood_is_said(fake_host, program, path, text, words, conf_dir):
    fake_host.programs = [program]
    fake_host.prints = {"--version": f"{program} version 4.3.1", "version": "Nomad v1.10.0"}
    fake_host.put(path, text)
    found = on_host(fake_host)
    assert [runtime.notes for runtime in found if not re.search(words, runtime.notes[0])] == []
    assert found[0].conf_dir == conf_dir or not conf_dir


# --- all together


def on_host(fake_host):
    return discover.runtimes_on_host(fake_host.path("/net.d"), HostView())


def test_a_host_without_runtimes_has_none(fake_host):
    assert on_host(fake_host) == []


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("containerd", ["containerd-2.1"]),
        ("crio", ["crio"]),
        ("nomad agent -config /nowhere", ["nomad", "nomad-bridge"]),
        ("buildkitd", ["buildkit"]),
        ("kubelet --network-plugin=cni", ["dockershim"]),
        ("cri-dockerd", ["cri-dockerd"]),
        ("mesos-agent --network_cni_config_dir=/c", ["mesos"]),
        ("mesos-slave", ["mesos"]),
    ],
)
def test_a_runtime_is_found_by_its_process_alone(fake_host, command, names):
    argv = command.split()
    fake_host.processes = [Process(1, argv, argv[0])]
    assert [runtime.name for runtime in on_host(fake_host)] == names


@pytest.mark.parametrize(
    ("program", "names"),
    [
        ("containerd", ["containerd-2.1"]),
        ("crio", ["crio"]),
        ("podman", ["podman"]),
        ("nomad", ["nomad", "nomad-bridge"]),
        ("nerdctl", ["nerdctl"]),
        ("buildkitd", ["buildkit"]),
        ("firecracker", ["firecracker"]),
        ("firecracker-containerd", ["firecracker"]),
        ("rkt", ["rkt"]),
        ("mesos-slave", ["mesos"]),
    ],
)
def test_a_runtime_is_found_by_its_program_alone(fake_host, monkeypatch, program, names):
    fake_host.programs = [program]
    monkeypatch.setattr(os.path, "isdir", lambda path: True)
    assert [runtime.name for runtime in on_host(fake_host)] == names


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_containerd_of_a_distribution_is_found_by_its_configuration_alone(fake_host, name):
    fake_host.put(DISTRIBUTIONS[name], "version = 2\n")
    assert [runtime.name for runtime in on_host(fake_host)] == [name]


def test_runtimes_are_sorted_by_name_and_directory(fake_host):
    fake_host.programs = ["podman", "containerd", "nerdctl", "crio"]
    fake_host.put("/net.d/00-multus.conf", "{}")
    fake_host.put("/net.d/10-a.conf", "{}")
    names = [runtime.name for runtime in on_host(fake_host)]
    assert names == ["containerd-2.1", "crio", "multus", "nerdctl", "podman"]


def test_the_programs_of_runtimes_are_run_once_for_a_view_and_what_is_planned_stays_in_the_plan(fake_host):
    fake_host.programs, view = ["containerd"], HostView()
    [first] = discover.runtimes_on_host(fake_host.path("/net.d"), view)
    asked = list(fake_host.asked)
    first.set_conf("/planned")
    assert [runtime.conf_dir for runtime in discover.runtimes_on_host("", view)] == ["/etc/cni/net.d"]
    assert fake_host.asked == asked != []


def test_named_ones_are_those_of_the_host_or_as_if_they_were_there(fake_host):
    fake_host.programs = ["containerd"]
    fake_host.prints = {"--version": "containerd x 1.6.20", "config default": "version = 2"}
    names = ["containerd", "crio", "ctr", "nomad-bridge"]
    here, absent, fixed, own = discover.named_runtimes(names, "/srv/net.d", ["/srv/bin"], HostView())
    assert (here.name, here.conf_dir, here.evidence) == ("containerd-1.6", "/etc/cni/net.d", "/usr/bin/containerd")
    assert (absent.conf_dir, absent.bin_dirs, absent.evidence) == ("/srv/net.d", ["/srv/bin"], "")
    assert "it is assumed to read /srv/net.d" in absent.notes[0]
    assert (fixed.conf_dir, own.notes) == ("/etc/cni/net.d", [])
    assert "default" in fixed.notes[0]
    (runtime,) = discover.named_runtimes(["containerd", "containerd-1.6"], "/a", [], HostView())
    assert runtime.name == "containerd-1.6"


def test_containerd_that_is_not_there_is_the_newest(fake_host):
    assert [one.name for one in discover.named_runtimes(["containerd"], "/a", ["/b"], HostView())] == ["containerd-2.1"]


# --- reading


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(str(tmp_path / "fifo"))
    for name in ("fifo", "."):
        with pytest.raises(HostError):
            reading.read_text(str(tmp_path / name))
    assert reading.read_text(str(tmp_path / "nothing")) is None
    (tmp_path / "file").write_bytes(b"\xff")
    assert reading.read_text(str(tmp_path / "file")) == "\ufffd"
    assert reading.read_text(str(tmp_path / "file" / "below")) is None


def test_files_are_walked_as_go_does(tmp_path):
    for name in ("b", "a/z", "a.x", "a/b/c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    walked = [os.path.relpath(path, str(tmp_path)) for path in reading.below(str(tmp_path))]
    assert walked == ["a/b/c", "a/z", "a.x", "b"]


def test_commands_are_run_through_commands_only(monkeypatch):
    asked = []

    def run(argv, timeout):
        asked.append(list(argv))
        return commands.Done(1 if "bad" in argv else 0, b"tool 1.2.3\n", "wrong")

    monkeypatch.setattr(commands, "run_command", run)
    notes = []
    assert reading.version("/usr/bin/tool", "--version", notes) == "1.2.3"
    assert reading.version("/usr/bin/tool", "bad", notes) == ""
    assert asked == [["/usr/bin/tool", "--version"], ["/usr/bin/tool", "bad"]]
    assert len(notes) == 1 and "exit status 1" in notes[0]


def test_installed_programs_are_found_in_fixed_directories(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "DIRECTORIES", (str(tmp_path),))
    assert reading.installed("tool") == ""
    (tmp_path / "tool").write_text("")
    assert reading.installed("tool") == ""
    (tmp_path / "tool").chmod(0o755)
    assert reading.installed("tool") == str(tmp_path / "tool")


# ---- retired, but in use: kubelet with Docker, rkt, Mesos; and the agent of Amazon ECS


def test_kubelet_counts_with_dockershim_only(fake_host):
    fake_host.run("kubelet", "--container-runtime-endpoint=unix:///x")
    fake_host.run("kubelet", "--container-runtime=remote", "--network-plugin=cni")
    assert others(fake_host) == {}
    fake_host.run("kubelet", "--network-plugin=cni", "--cni-conf-dir=/c", "--cni-bin-dir=/a,/b")
    runtime = others(fake_host)["dockershim"]
    assert (runtime.conf_dir, runtime.bin_dirs) == ("/c", ["/a", "/b"])


@pytest.mark.parametrize(
    ("version", "words", "name", "reads"),
    [
        ("v1.9.11", ["--network-plugin=cni"], "dockershim", True),
        ("v1.10.0", ["--network-plugin=cni"], "dockershim", True),
        ("v1.8.4", ["--network-plugin=kubenet"], "kubenet", True),
        ("v1.9.0", [], "dockershim", False),
        ("v1.23.17", ["--network-plugin=kubernetes.io/no-op"], "dockershim", False),
        ("v1.24.0", [], None, None),
        ("", [], None, None),
        ("v1.9.0", ["--network-plugin=exec"], None, None),
    ],
)
def test_kubelets_version_and_its_network_plugin_make_the_profile(fake_host, version, words, name, reads):
    fake_host.prints = {"--version": f"Kubernetes {version}"} if version else {}
    fake_host.run("kubelet", *words)
    found = [(one.name, one.reads, one.default_network == "kubenet") for one in others(fake_host).values()]
    assert found == ([(name, reads, name == "kubenet")] if name else [])
    assert all(one.reads or "Docker makes the network of pods" in one.notes[-1] for one in others(fake_host).values())


def test_an_old_kubelet_takes_the_directory_of_network_plugins(fake_host):
    fake_host.run("kubelet", "--network-plugin=cni", "--network-plugin-dir=/n")
    runtime = others(fake_host)["dockershim"]
    assert (runtime.conf_dir, runtime.bin_dirs) == ("/n", ["/n"])


def test_rkt_has_fixed_directories(fake_host):
    fake_host.programs, fake_host.prints = ["rkt"], {"version": "rkt Version: 1.30.0\nappc Version: 0.8.11"}
    runtime = others(fake_host)["rkt"]
    assert (runtime.version, runtime.conf_dir, runtime.bin_dirs) == (
        "1.30.0",
        "/etc/rkt/net.d",
        ["/usr/lib/rkt/plugins/net"],
    )


def test_mesos_is_configured_by_flags_and_files(fake_host):
    fake_host.programs = ["mesos-agent"]
    assert (others(fake_host)["mesos"].reads, len(others(fake_host)["mesos"].notes)) == (False, 1)
    fake_host.put("/etc/mesos-slave/network_cni_config_dir", "/c\n")
    fake_host.put("/etc/mesos-slave/network_cni_plugins_dir", "/p:/q\n")
    runtime = others(fake_host)["mesos"]
    assert (runtime.reads, runtime.conf_dir, runtime.bin_dirs) == (True, "/c", ["/p", "/q"])
    fake_host.run("mesos-agent", "--network_cni_config_dir=/d", "--network_cni_plugins_dir=relative")
    runtime = others(fake_host)["mesos"]
    assert runtime.conf_dir == "/d" and "not understood" in runtime.notes[0]


@pytest.mark.parametrize(
    ("text", "reads", "bin_dir"),
    [
        ("", False, "/amazon-ecs-cni-plugins"),
        ("ECS_ENABLE_TASK_ENI=false\n", False, "/amazon-ecs-cni-plugins"),
        ("#x\nECS_ENABLE_TASK_ENI=true\n", True, "/amazon-ecs-cni-plugins"),
        ("ECS_CNI_PLUGINS_PATH=/ecs/cni\nECS_ENABLE_TASK_ENI=true", True, "/ecs/cni"),
        ("ECS_CNI_PLUGINS_PATH=ecs\nECS_ENABLE_TASK_ENI=True", True, "/amazon-ecs-cni-plugins"),
    ],
)
def test_the_agent_of_ecs_is_found_by_its_configuration(fake_host, text, reads, bin_dir):
    fake_host.put("/etc/ecs/ecs.config", text)
    [runtime] = on_host(fake_host)
    assert (runtime.name, runtime.reads, runtime.bin_dirs) == ("ecs", reads, [bin_dir])
