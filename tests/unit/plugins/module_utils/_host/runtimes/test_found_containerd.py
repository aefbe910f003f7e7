# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.processes import Process
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import profiles
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.containerd import Containerd
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.settings import RuntimeSettings

HERE = os.path.dirname(os.path.abspath(__file__))


CONFIG = "/etc/containerd/config.toml"
DUMP = "--config {root}/etc/containerd/config.toml config dump"
V2 = 'version = 2\nimports = ["conf.d/*.toml"]\n[plugins."io.containerd.grpc.v1.cri".cni]\nbin_dir = "/usr/lib/cni"\n'


def dump(version):
    with open(os.path.join(HERE, "dumps", f"containerd-{version}.toml"), encoding="utf-8") as stream:
        return stream.read()


def find(fake_host):
    return Containerd.find(fake_host.processes)


def test_none_is_found_where_none_is(fake_host):
    assert find(fake_host) == []


@pytest.mark.parametrize(
    ("version", "printed", "name", "bin_dirs"),
    [
        # An import takes the place of the whole section: the main file's bin_dir is gone.
        ("1.6.20", "containerd github.com/containerd/containerd 1.6.20~ds1 x", "containerd-1.6", ["/opt/cni/bin"]),
        ("1.7.24", "containerd github.com/containerd/containerd 1.7.24~ds1 x", "containerd-1.7", ["/usr/lib/cni"]),
        (
            "2.1.9",
            "containerd github.com/containerd/containerd/v2 2.1.9+unknown ",
            "containerd-2.1",
            ["/usr/lib/cni", "/opt/cni/bin"],
        ),
    ],
)
def test_real_dumps_tell_directories_numbers_and_handlers(fake_host, version, printed, name, bin_dirs):
    fake_host.programs = ["containerd"]
    fake_host.put(CONFIG, "version = 2\n")
    fake_host.prints = {"--version": printed, DUMP: dump(version)}
    runtime, handler = find(fake_host)
    assert (runtime.name, runtime.version, runtime.evidence) == (name, version, "/usr/bin/containerd")
    assert (runtime.conf_dir, runtime.bin_dirs, runtime.max_networks) == ("/srv/cni/net.d", bin_dirs, 3)
    assert (runtime.notes, runtime.reads) == ([], True)
    assert (handler.conf_dir, handler.max_networks, handler.bin_dirs) == ("/srv/kata/net.d", 2, bin_dirs)
    assert handler.notes == ["for pods with the runtime handler kata"]


def test_without_a_configuration_the_packages_defaults_are_asked_for(fake_host):
    fake_host.programs = ["containerd"]
    fake_host.prints = {"--version": "containerd x 2.1.9", "config default": dump("2.1.9-default")}
    [runtime] = find(fake_host)
    assert (runtime.conf_dir, runtime.max_networks) == ("/etc/cni/net.d", 1)
    assert runtime.bin_dirs == ["/usr/lib/cni", "/opt/cni/bin"]


def test_a_running_daemon_says_which_configuration_it_reads(fake_host, tmp_path):
    path = fake_host.put("/srv/own.toml", "version = 2")
    fake_host.run("containerd", "-c", path)
    fake_host.programs = ["containerd"]
    fake_host.prints = {"--version": "containerd x 1.7.24", "--config {root}/srv/own.toml config dump": dump("1.7.24")}
    first, _handler, second = find(fake_host)
    assert (first.conf_dir, first.evidence) == ("/srv/cni/net.d", "a running containerd")
    assert second.evidence == "/usr/bin/containerd"
    assert any("its own command failed" in note for note in second.notes)


def test_a_daemon_that_runs_and_is_installed_is_found_once(fake_host):
    fake_host.programs = ["containerd"]
    fake_host.run("containerd")
    fake_host.prints = {"--version": "containerd x 1.7.24", "config default": "version = 2"}
    assert len(find(fake_host)) == 1


def test_a_disabled_plugin_reads_nothing(fake_host):
    fake_host.programs = ["containerd"]
    for word in ("cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"):
        fake_host.prints = {"--version": "containerd x 1.7.24", "config default": f'disabled_plugins = ["{word}"]'}
        [runtime] = find(fake_host)
        assert not runtime.reads and "disabled_plugins" in runtime.notes[0]


def test_the_configuration_is_read_here_if_the_command_cannot_be_run(fake_host):
    fake_host.programs = ["containerd"]
    fake_host.put(CONFIG, V2)
    settings = '[plugins."io.containerd.grpc.v1.cri".cni]\nconf_dir = "/srv/a"\n'
    fake_host.put("/etc/containerd/conf.d/10-a.toml", settings)
    fake_host.put("/etc/containerd/conf.d/20-b.toml", '[plugins."io.containerd.grpc.v1.cri".cni]\nmax_conf_num = 2\n')
    [runtime] = find(fake_host)
    # Of an unknown version; a recent one is assumed: imports are merged.
    assert (runtime.name, runtime.conf_dir, runtime.bin_dirs) == ("containerd-2.1", "/srv/a", ["/usr/lib/cni"])
    assert runtime.max_networks == 2
    assert "its version is unknown" in runtime.notes[0] and "its own command failed" in runtime.notes[1]
    fake_host.prints = {"--version": "containerd x 1.7.24"}
    [runtime] = find(fake_host)
    # As 1.7 does it: the last import's section is all that there is.
    assert (runtime.conf_dir, runtime.bin_dirs, runtime.max_networks) == ("/etc/cni/net.d", ["/opt/cni/bin"], 2)


def test_version_1_of_the_configuration_is_understood(fake_host):
    fake_host.programs = ["containerd"]
    fake_host.put(CONFIG, '[plugins.cri.cni]\nconf_dir = "/srv/one/"\n')
    assert find(fake_host)[0].conf_dir == "/srv/one"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("version = [", "is not understood"),
        ('[plugins."io.containerd.grpc.v1.cri".cni]\nconf_dir = 7', "conf_dir is not a string"),
        ('[plugins."io.containerd.grpc.v1.cri".cni]\nconf_dir = "net.d"', "not an absolute path"),
        ('[plugins."io.containerd.grpc.v1.cri".cni]\nconf_dir = "/a\\u0000b"', "not an absolute path"),
        ('imports = ["/a/\\u0000*"]', "not an absolute path"),
        ('[plugins."io.containerd.grpc.v1.cri".cni]\nbin_dirs = "/a"', "not a list of strings"),
        ('[plugins."io.containerd.grpc.v1.cri".cni]\nmax_conf_num = true', "not an integer"),
        ("\udcff", "is not understood"),
        ("x" * (1 << 20) + "y", "larger than 1 MiB"),
    ],
)
def test_what_is_not_understood_is_said_and_the_default_taken(fake_host, text, words):
    fake_host.programs = ["containerd"]
    os.makedirs(os.path.dirname(fake_host.path(CONFIG)))
    with open(fake_host.path(CONFIG), "wb") as stream:
        stream.write(text.encode("utf-8", "surrogateescape"))
    [runtime] = find(fake_host)
    assert (runtime.conf_dir, runtime.bin_dirs) == ("/etc/cni/net.d", ["/opt/cni/bin"])
    assert words in runtime.notes[-1] and "default" in runtime.notes[-1]


def test_both_keys_of_2_1_keep_cri_from_starting_unless_bin_dirs_is_the_default(fake_host):
    fake_host.programs = ["containerd"]
    fake_host.put(CONFIG, "version = 3\n")
    text = 'version = 3\n[plugins."io.containerd.cri.v1.runtime".cni]\nbin_dir = "/b"\nbin_dirs = '
    fake_host.prints = {"--version": "containerd x 2.1.9", "config default": dump("2.1.9-default")}
    for bin_dirs, usable in [('["/usr/lib/cni", "/opt/cni/bin"]', True), ('["/b"]', False)]:
        fake_host.prints[DUMP] = text + bin_dirs
        [runtime] = find(fake_host)
        assert runtime.bin_dirs == ["/b"]
        assert runtime.has(RuntimeSettings(runtime.conf_dir, ["/b"])) == usable
        assert ("remove bin_dir" in runtime.refuses) is not usable


def test_a_dump_that_is_not_understood_falls_back_to_the_file(fake_host):
    fake_host.programs = ["containerd"]
    fake_host.put(CONFIG, V2)
    fake_host.prints = {"--version": "containerd x 2.1.9", DUMP: "version = <3>"}
    [runtime] = find(fake_host)
    assert runtime.bin_dirs == ["/usr/lib/cni"]
    assert "is not understood" in runtime.notes[0]


def test_sections_of_the_wrong_kind_do_no_harm(fake_host):
    fake_host.programs = ["containerd"]
    for text in ("plugins = 1", "[plugins]\ncri = 1", '[plugins."io.containerd.grpc.v1.cri"]\ncni = []', "imports = 1"):
        fake_host.prints = {"--version": "containerd x 1.7.24", "config default": text}
        assert find(fake_host)[0].conf_dir == "/etc/cni/net.d"


def test_a_template_is_mentioned(fake_host):
    fake_host.programs = ["containerd"]
    text = '[plugins."io.containerd.grpc.v1.cri".cni]\nconf_template = "/etc/t"'
    fake_host.prints = {"--version": "containerd x 1.7.24", "config default": text}
    assert "10-containerd-net.conflist itself, from conf_template /etc/t" in find(fake_host)[0].notes[0]


@pytest.mark.parametrize("name", ["k3s", "rke2", "microk8s", "k0s"])
def test_distributions_are_found_by_their_files_and_their_processes(fake_host, name):
    config = profiles.PROFILES[name].config
    relative = config[len(str(fake_host.root)) :]
    settings = 'conf_dir = "/var/lib/x/net.d"\nbin_dir = "/var/lib/x"\n'
    fake_host.put(relative, f'[plugins."io.containerd.grpc.v1.cri".cni]\n{settings}')
    [runtime] = find(fake_host)
    assert (runtime.name, runtime.evidence, runtime.conf_dir) == (name, config, "/var/lib/x/net.d")
    fake_host.run("containerd", "-c", config)
    [runtime] = find(fake_host)
    assert (runtime.name, runtime.evidence) == (name, "a running containerd")


def test_k3s_without_flannel_has_containerds_defaults(fake_host):
    fake_host.put("/var/lib/rancher/k3s/agent/etc/containerd/config.toml", "version = 3")
    assert find(fake_host)[0].conf_dir == "/etc/cni/net.d"


def test_a_daemon_whose_program_was_removed_is_asked_by_the_one_that_is_installed(fake_host):
    fake_host.programs = ["containerd"]
    config = fake_host.put("/srv/c.toml", "version = 2\n")
    fake_host.processes = [Process(7, ["containerd", "-c", "c.toml"], "containerd", "", fake_host.path("/srv"))]
    fake_host.prints = {"--version": "containerd x 2.1.9", DUMP: dump("2.1.9")}
    runtime = find(fake_host)[0]
    assert (runtime.config, runtime.pid) == (config, 7)
    assert fake_host.asked[0] == ("/usr/bin/containerd", "--version")


def test_a_configuration_of_version_4_has_the_socket_among_the_plugins(fake_host):
    fake_host.programs = ["containerd"]
    fake_host.put(CONFIG, "version = 4\n")
    text = """
version = 4
[plugins."io.containerd.server.v1.grpc"]
address = "/run/own/containerd.sock"
[plugins."io.containerd.cri.v1.runtime".cni]
conf_dir = "/srv/net.d"
use_internal_loopback = true
"""
    fake_host.prints = {"--version": "containerd x 2.3.0", DUMP: text}
    [runtime] = find(fake_host)
    assert (runtime.address, runtime.conf_dir) == ("/run/own/containerd.sock", "/srv/net.d")
    assert runtime.internal_loopback is True


def test_a_handler_is_asked_as_its_containerd_is(fake_host):
    pid = fake_host.run("containerd")
    fake_host.put(CONFIG, "version = 2\n")
    fake_host.prints = {"--version": "containerd x 2.1.9", DUMP: dump("2.1.9")}
    runtime, handler = find(fake_host)
    assert (handler.handler, handler.pid, handler.address) == ("kata", pid, runtime.address)
