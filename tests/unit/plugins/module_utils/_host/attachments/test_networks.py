# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import request as attach_request
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries import usable
from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import ConfFile, scan_conf_dir, with_folders
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView


def write(directory, number):
    conf = {"cniVersion": "1.0.0", "name": f"net{number}", "plugins": [{"type": "bridge"}]}
    (directory / f"{number}0.conflist").write_text(json.dumps(conf))


def test_each_file_is_read_once(tmp_path, monkeypatch):
    read = []
    whole = attach_request.network_conf_from_file
    monkeypatch.setattr(attach_request, "network_conf_from_file", lambda path, *_more: read.append(path) or whole(path))
    for number in range(1, 5):
        write(tmp_path, number)
    networks = attach_request.Networks(str(tmp_path), [], HostView())
    assert [networks.load(f"net{number}").name for number in (4, 2, 1, 3, 4)] == [
        "net4",
        "net2",
        "net1",
        "net3",
        "net4",
    ]
    assert sorted(read) == [str(tmp_path / f"{number}0.conflist") for number in range(1, 5)]


def test_drop_ins_that_a_plan_leaves_count_before_they_are_there(tmp_path):
    write(tmp_path, 1)
    view = HostView()
    drop_in = ConfFile("20.conf", str(tmp_path / "net1" / "20.conf"), b'{"type": "tuning"}')
    view.expect_files(str(tmp_path), with_folders(scan_conf_dir(str(tmp_path)), {"net1": [drop_in]}), ())
    plugins = attach_request.Networks(str(tmp_path), [], view).load("net1").plugins
    assert [plugin.type for plugin in plugins] == ["bridge", "tuning"]


def test_a_broken_file_does_not_hide_the_networks_of_other_files(tmp_path):
    for number in range(1, 4):
        write(tmp_path, number)
    (tmp_path / "15.conflist").write_text("{")
    networks = attach_request.Networks(str(tmp_path), [], HostView())
    for name in ("net1", "net2", "net3"):
        assert networks.load(name).name == name
    with pytest.raises(HostError) as caught:
        networks.load("net4")
    assert (caught.value.code, caught.value.facts["file"]) == ("bad_config", str(tmp_path / "15.conflist"))


def load(tmp_path, name, managed=None, written=None):
    view = HostView(SimpleNamespace(networks=managed or {}))
    view.written.update(written or {})
    return attach_request.Networks(str(tmp_path), [], view).load(name)


def refused(tmp_path, name, **more):
    with pytest.raises(HostError) as caught:
        load(tmp_path, name, **more)
    return caught.value


def test_a_network_in_a_file_of_one_plugin(tmp_path):
    for name, network in (("10-a.conf", "a"), ("20-b.json", "b")):
        (tmp_path / name).write_text(json.dumps({"cniVersion": "1.0.0", "name": network, "type": "bridge"}))
    for network in ("a", "b"):
        config = load(tmp_path, network)
        assert (config.name, [plugin.type for plugin in config.plugins]) == (network, ["bridge"])
    # A conflist counts first.
    write(tmp_path, 1)
    (tmp_path / "10-c.conf").write_text(json.dumps({"cniVersion": "1.0.0", "name": "net1", "type": "ptp"}))
    assert load(tmp_path, "net1").plugins[0].type == "bridge"


def test_users_who_can_change_a_file_decide_what_runs(tmp_path):
    write(tmp_path, 1)
    path = tmp_path / "10.conflist"
    path.chmod(0o666)
    assert refused(tmp_path, "net1").code == "unsafe_permissions"
    # What a step writes gets another mode.
    assert load(tmp_path, "net1", written={str(path): path.read_bytes()}).name == "net1"
    path.chmod(0o600)
    (tmp_path / "net1").mkdir()
    (tmp_path / "net1").chmod(0o777)
    assert refused(tmp_path, "net1").code == "unsafe_permissions"


def test_every_earlier_file_of_one_plugin_decides_too(tmp_path):
    for name, network in (("10-a.conf", "a"), ("20-b.conf", "b")):
        (tmp_path / name).write_text(json.dumps({"cniVersion": "1.0.0", "name": network, "type": "bridge"}))
    (tmp_path / "10-a.conf").chmod(0o666)
    assert refused(tmp_path, "b").code == "unsafe_permissions"


def test_a_network_that_is_not_there(tmp_path):
    error = refused(tmp_path, "demo")
    assert (error.code, error.msg) == (
        "missing_network",
        f"no file in {tmp_path} configures the network demo; write one with cni_conf",
    )
    folder = tmp_path / "none"
    error = refused(folder, "demo")
    assert error.code == "missing_conf_dir"
    assert f"there is no directory {folder}; create both with cni_conf" in error.msg


def test_the_broken_file_that_is_named_after_the_network_is_reported(tmp_path):
    for name in ("05-other", "10-demo", "20-more"):
        (tmp_path / f"{name}.conflist").write_text("{")
    error = refused(tmp_path, "demo")
    assert (error.code, error.facts["file"]) == ("bad_config", str(tmp_path / "10-demo.conflist"))
    assert error.msg.startswith(f"the network demo cannot be loaded: {tmp_path}/10-demo.conflist")
    assert error.msg.count("10-demo.conflist") == 1
    assert refused(tmp_path, "third").facts["file"] == str(tmp_path / "05-other.conflist")


def test_a_broken_file_that_is_managed_can_be_written_again(tmp_path):
    path = str(tmp_path / "10-demo.conflist")
    (tmp_path / "10-demo.conflist").write_text("{")
    error = refused(tmp_path, "demo", managed={path: {"network": "demo"}})
    assert (error.code, error.facts["file"]) == ("missing_network", path)
    assert error.msg.startswith(f"the file of the network demo cannot be loaded: {path}")
    assert error.msg.endswith("; write it again with cni_conf")
    # The file of another network hides nothing.
    error = refused(tmp_path, "demo", managed={path: {"network": "other"}})
    assert (error.code, error.facts) == ("missing_network", {})


def test_an_error_is_raised_again(tmp_path):
    networks = attach_request.Networks(str(tmp_path), [], HostView())
    errors = []
    for _time in range(2):
        with pytest.raises(HostError) as caught:
            networks.load("net1")
        errors.append(caught.value)
        write(tmp_path, 1)
    assert errors[0] is errors[1]


# ---- its plugins


class Binaries:
    """Plugins with the versions that they support; it counts how often they are asked."""

    bin_dirs = ()

    def __init__(self, **versions):
        self.versions = versions
        self.asked = []

    def ask(self, plugin):
        self.asked.append(plugin)
        if plugin not in self.versions:
            raise HostError(f"there is no {plugin}", code="missing_plugin")
        return f"/bin/{plugin}", self.versions[plugin]


def code_of(tmp_path, monkeypatch, binaries, *plugins):
    """Return the code with which plugins are refused, "" if they are not; they are asked once."""
    made = []
    monkeypatch.setattr(usable, "Binaries", lambda bin_dirs, view: made.append(bin_dirs) or binaries)
    conf = {"cniVersion": "1.0.0", "name": "demo", "plugins": [*plugins]}
    (tmp_path / "10.conflist").write_text(json.dumps(conf))
    networks = attach_request.Networks(str(tmp_path), ["/bin"], HostView())
    codes = []
    for _time in range(2):
        try:
            networks.test_plugins(networks.load("demo"))
            codes.append("")
        except HostError as error:
            codes.append(error.code)
    assert codes[0] == codes[1]
    assert made in ([], [["/bin"]])
    return codes[0]


def test_plugins_are_asked_once(tmp_path, monkeypatch):
    binaries = Binaries(bridge=["1.0.0"], ipam=["1.0.0"])
    assert code_of(tmp_path, monkeypatch, binaries, {"type": "bridge", "ipam": {"type": "ipam"}}) == ""
    assert sorted(binaries.asked) == ["bridge", "ipam"]


def test_a_plugin_that_does_not_support_the_version(tmp_path, monkeypatch):
    binaries = Binaries(bridge=["0.4.0"])
    assert code_of(tmp_path, monkeypatch, binaries, {"type": "bridge"}) == "unsupported_by_plugin"
    assert binaries.asked == ["bridge"]


def test_a_missing_plugin_is_the_last_problem(tmp_path, monkeypatch):
    binaries = Binaries(bridge=["0.4.0"], tuning=["1.0.0"])
    wanted = {"type": "missing"}, {"type": "bridge"}
    assert code_of(tmp_path, monkeypatch, binaries, *wanted) == "unsupported_by_plugin"
    assert code_of(tmp_path, monkeypatch, binaries, {"type": "missing"}, {"type": "tuning"}) == "missing_plugin"
