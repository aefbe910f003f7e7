# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import confdir
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.networks import owners
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import apptainer, discover, reading
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.rules import judge
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.settings import RuntimeSettings
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

CONFIG = "/etc/apptainer/apptainer.conf"
PACKAGED = """\
# CNI CONFIGURATION PATH: [STRING]
#cni configuration path =
allow setuid = yes
cni plugin path =
"""


@pytest.fixture
def fake_host(fake_host):
    fake_host.programs = ["apptainer"]
    fake_host.prints = {"--version": "apptainer version 1.4.5"}
    return fake_host


def find():
    (runtime,) = apptainer.Apptainer.find([])
    return runtime


def test_a_host_without_apptainer(fake_host):
    fake_host.programs = []
    assert discover.find_runtimes() == []
    fake_host.put(CONFIG, PACKAGED)
    runtime = find()
    assert (runtime.name, runtime.version, runtime.evidence) == ("apptainer", "", fake_host.path(CONFIG))


def test_the_defaults_of_the_package(fake_host):
    assert find().conf_dir == "/etc/apptainer/network"
    fake_host.put(CONFIG, PACKAGED)
    runtime = find()
    assert (runtime.version, runtime.conf_dir, runtime.bin_dirs) == (
        "1.4.5",
        "/etc/apptainer/network",
        ["/usr/lib/cni"],
    )
    assert (runtime.reads, runtime.allowed, runtime.notes) == (True, {}, [])


def test_the_first_line_of_a_key_counts(fake_host):
    fake_host.put(
        CONFIG,
        "cni configuration path = /a/\ncni configuration path = /b\ncni plugin path=/p\n"
        "CNI plugin path = /q\nallow net networks = pods, ,lab\nallow net users =\nnonsense\n",
    )
    runtime = find()
    assert (runtime.conf_dir, runtime.bin_dirs) == ("/a", ["/p"])
    assert runtime.allowed == {"networks": ["pods", "lab"], "users": []}


@pytest.mark.parametrize("text", ['cni plugin path = "/p"\n', "cni configuration path = relative\n"])
def test_a_configuration_that_is_not_understood_is_unknown(fake_host, text):
    fake_host.put(CONFIG, text)
    runtime = find()
    assert not runtime.reads and "which is not an absolute path" in runtime.notes[0]


def test_a_configuration_that_cannot_be_read_is_unknown(fake_host):
    os.makedirs(fake_host.path(CONFIG))
    runtime = find()
    assert not runtime.reads and runtime.notes[0].startswith(f"unknown: {fake_host.path(CONFIG)} ")


# --- what it does with a directory


def verdict(tmp_path, files, allowed=(), missing=()):
    folder = tmp_path / "network"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    runtime = find()
    runtime.allowed = {"networks": list(allowed)}

    def ask(plugin):
        if plugin in missing:
            raise HostError("it is missing", code="missing_plugin")
        return ["1.0.0"]

    return judge(runtime, confdir.scan_conf_dir(str(folder)), ask)


def conflist(name, kind="bridge"):
    return '{"cniVersion": "1.0.0", "name": "%s", "plugins": [{"type": "%s", "ipam": {"type": "dhcp"}}]}' % (name, kind)


def test_networks_are_chosen_by_name_and_end_at_a_broken_file(fake_host, tmp_path):
    files = {"00_a.conflist": conflist("a"), "05_b.conflist": "b", "10_c.conflist": conflist("c")}
    found = verdict(tmp_path, files, ["a", "c"])
    assert [network.name for network in found.networks] == ["a"]
    assert found.reason == "it has no default network; available by name: 'a'"
    assert "05_b.conflist" in found.notes[0]
    assert "error parsing configuration list" in found.notes[0]
    assert found.notes[-1] == "'allow net networks' names 'c', which no file that it can load has"


def test_a_list_in_a_conf_file_breaks_what_comes_after_it(fake_host, tmp_path):
    found = verdict(tmp_path, {"00_a.conf": conflist("a"), "10_c.conflist": conflist("c")})
    assert [network.name for network in found.networks] == ["c"]
    assert any("missing 'type'" in note for note in found.notes)


def test_a_plugin_that_its_path_lacks_is_told(fake_host, tmp_path):
    found = verdict(tmp_path, {"00_a.conflist": conflist("a", "ptp")}, missing=["ptp", "dhcp"])
    assert [network.name for network in found.networks] == ["a"]
    text = "the network 'a' needs the plugin {}, which is not in /usr/lib/cni"
    assert found.notes == [text.format(kind) for kind in ("dhcp", "ptp")]


def test_its_own_files_are_recognised():
    for name in ("00_bridge", "10_ptp", "20_ipvlan", "30_macvlan", "40_fakeroot"):
        file = confdir.ConfFile(f"{name}.conflist", f"/etc/apptainer/network/{name}.conflist")
        owner = owners.recognise(file)
        assert owner is not None and owner.name == "Apptainer"
        # Nothing writes them again.
        assert owners.Owners("/etc/apptainer/network").living(file) is None


# --- its settings


def changed(fake_host, wanted):
    changes = find().changes(wanted)
    for change in changes:
        change.make()
    return reading.read_text(fake_host.path(CONFIG))


WANTED = RuntimeSettings("/etc/cni/net.d", ["/opt/cni/bin"])


def test_settings_are_put_before_all_others_and_go_without_a_trace(fake_host):
    text = PACKAGED + "cni configuration path = /mine\n"
    fake_host.put(CONFIG, text)
    os.chmod(fake_host.path(CONFIG), 0o640)
    assert changed(fake_host, WANTED).endswith(text)
    runtime = find()
    assert (runtime.conf_dir, runtime.bin_dirs) == ("/etc/cni/net.d", ["/opt/cni/bin"])
    assert runtime.has(WANTED)
    assert runtime.changes(WANTED) == []
    other = RuntimeSettings("/srv/net", ["/opt/cni/bin"])
    assert changed(fake_host, other).count("podwire.cni") == 2
    assert find().conf_dir == "/srv/net"
    assert changed(fake_host, WANTED._replace(present=False)) == text
    assert os.stat(fake_host.path(CONFIG)).st_mode & 0o777 == 0o640
    assert find().changes(WANTED._replace(present=False)) == []


ALLOW = {"networks": ["hpc", "lab"], "users": []}


def test_who_may_use_networks(fake_host):
    text = PACKAGED + "allow net networks = mine\nallow net groups = staff\n"
    fake_host.put(CONFIG, text)
    wanted = WANTED._replace(allow=ALLOW)
    assert not find().has(wanted)
    assert "allow net networks = hpc,lab\nallow net users =\n# End" in changed(fake_host, wanted)
    runtime = find()
    assert runtime.allowed == {"networks": ["hpc", "lab"], "users": [], "groups": ["staff"]}
    assert runtime.has(wanted)
    assert runtime.changes(wanted) == []
    # What is not asked for stays.
    assert runtime.changes(WANTED) == []
    assert changed(fake_host, WANTED._replace(allow={"users": ["ann"]})).count("allow net networks") == 2
    assert find().allowed == {"networks": ["hpc", "lab"], "users": ["ann"], "groups": ["staff"]}
    assert changed(fake_host, WANTED._replace(present=False)) == text


def test_what_is_configured_already_is_left_alone(fake_host):
    fake_host.put(CONFIG, "cni configuration path = /etc/cni/net.d\ncni plugin path = /opt/cni/bin\n")
    assert find().changes(WANTED) == []


def test_it_searches_one_directory(fake_host):
    fake_host.put(CONFIG, PACKAGED)
    with fails_with("cannot_configure", "searches one directory for plugins, and bin_dirs has 2"):
        find().changes(WANTED._replace(bin_dirs=["/a", "/b"]))


def test_a_file_that_did_not_exist_goes_again(fake_host):
    changed(fake_host, WANTED)
    assert find().conf_dir == "/etc/cni/net.d"
    assert changed(fake_host, WANTED._replace(present=False)) is None
