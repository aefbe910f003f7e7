# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.outcome import Where
from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.versions import plugin_in_use, users_of
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils.libcni.cache import Entry, write_entry
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.binaries.plugin_host import (
    BROKEN,
    ELF,
    NEW,
    OLD,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with


def network(plugin_host, cni_version, name="apps", plugin="bridge"):
    os.makedirs(plugin_host.conf_dir, exist_ok=True)
    path = os.path.join(plugin_host.conf_dir, "10-%s.conflist" % name)
    with open(path, "w") as stream:
        json.dump({"cniVersion": cni_version, "name": name, "plugins": [{"type": plugin}]}, stream)
    return path


def test_nothing_goes_live_that_does_not_support_a_network_which_worked(plugin_host):
    plugin_host.apply(plugin_host.present(NEW))
    path = network(plugin_host, "1.1.0")
    plan = plugin_host.present(dict(OLD, other=ELF + b"new other"))
    with fails_with("network_unsupported") as caught:
        plugin_host.apply(plan)
    for word in ("'apps'", path, "1.1.0", "bridge", "supports 1.0.0)", "force"):
        assert word in caught.value.msg
    assert plugin_host.files() == NEW


def test_with_force_it_is_a_warning_and_goes_live(plugin_host):
    plugin_host.apply(plugin_host.present(NEW))
    network(plugin_host, "1.1.0")
    plan = plugin_host.present(OLD, force=True)
    plugin_host.apply(plan)
    assert plugin_host.files()["bridge"] == OLD["bridge"]
    assert [code for code, _text in plan.warnings] == ["network_unsupported"]


@pytest.mark.parametrize("before", [OLD, {}, {"bridge": ELF + BROKEN}])
def test_a_network_that_did_not_work_before_either_is_a_warning(plugin_host, before):
    for name, content in before.items():
        plugin_host.put(name, content)
    network(plugin_host, "9.9.0")
    plan = plugin_host.present(NEW)
    plugin_host.apply(plan)
    assert plugin_host.files()["bridge"] == NEW["bridge"]
    assert [code for code, _text in plan.warnings] == ["network_unsupported"]


def test_what_is_kept_is_refused_in_check_mode_already(plugin_host):
    plugin_host.apply(plugin_host.present(OLD))
    plugin_host.apply(plugin_host.present(NEW))
    network(plugin_host, "1.1.0")
    plan = plugin_host.present(OLD, check=True)
    assert "does not support" in plan.error.msg
    assert [step.kind for step in plan.steps] == ["replace", "replace"]
    with pytest.raises(HostError, match="does not support"):
        plugin_host.present(OLD)


def test_what_nobody_knows_yet_is_predicted_in_check_mode(plugin_host):
    plugin_host.apply(plugin_host.present(NEW))
    network(plugin_host, "1.1.0")
    assert plugin_host.present(OLD, check=True).changed


def test_networks_that_the_manifest_knows_elsewhere_count_too(plugin_host, tmp_path):
    plugin_host.apply(plugin_host.present(NEW))
    path = network(plugin_host, "1.1.0")
    manifest = plugin_host.manifest()
    manifest.networks[path] = {"network": "apps", "sha256": "", "original": None}
    manifest.save()
    plugin_host.conf_dir = str(tmp_path / "nowhere")
    with pytest.raises(HostError, match="does not support"):
        plugin_host.apply(plugin_host.present(OLD))


def test_an_attachment_needs_its_plugin_for_its_del(plugin_host):
    plugin_host.apply(plugin_host.present(NEW))
    config = {"cniVersion": "1.1.0", "name": "gone", "plugins": [{"type": "bridge"}]}
    write_entry(plugin_host.cache_dir, Entry("web", json.dumps(config).encode(), "eth0", "gone"))
    with pytest.raises(HostError, match="the attachment gone/web/eth0"):
        plugin_host.apply(plugin_host.present(OLD))


def test_a_binary_that_no_network_runs_breaks_none(plugin_host, tmp_path):
    plugin_host.apply(plugin_host.present(NEW))
    network(plugin_host, "1.1.0")
    plugin_host.bin_dirs = [str(tmp_path / "elsewhere")]
    plugin_host.apply(plugin_host.present(OLD))
    assert plugin_host.files()["bridge"] == OLD["bridge"]


@pytest.fixture
def conf_dir(tmp_path):
    (tmp_path / "net.d").mkdir()
    return tmp_path / "net.d"


@pytest.fixture
def cache_dir(tmp_path):
    (tmp_path / "cache" / "results").mkdir(parents=True)
    return tmp_path / "cache"


def conflist(name, *plugins):
    return json.dumps({"cniVersion": "1.0.0", "name": name, "plugins": list(plugins)})


def users(name, conf_dir, cache, view=None):
    return users_of([name, ""], view or HostView(), Where(str(conf_dir), [], str(cache), 0), "/opt/cni/bin").get(name)


@pytest.mark.parametrize(
    "name, plugin",
    [
        ("bridge", {"type": "bridge"}),
        ("host-local", {"type": "ptp", "ipam": {"type": "host-local"}}),
        ("macvlan", {"type": "x", "delegate": {"type": "macvlan"}}),
        ("bridge", {"type": "flannel"}),
        ("ipvlan", {"type": "multus", "delegates": [{"plugins": [{"type": "ipvlan"}]}]}),
        ("sriov", {"type": "multus", "delegates": [{"type": "sriov"}]}),
    ],
)
def test_every_way_of_naming_a_plugin_counts(conf_dir, cache_dir, name, plugin):
    (conf_dir / "10-a.conflist").write_text(conflist("a", plugin))
    assert users(name, conf_dir, cache_dir) == ["the network 'a' in %s/10-a.conflist" % conf_dir]


def test_drop_ins_count(conf_dir, cache_dir):
    (conf_dir / "10-a.conflist").write_text(conflist("a", {"type": "bridge"}))
    (conf_dir / "a").mkdir()
    (conf_dir / "a" / "10-t.conf").write_text(json.dumps({"type": "tuning"}))
    assert users("tuning", conf_dir, cache_dir) == ["the network 'a' in %s/a/10-t.conf" % conf_dir]


def test_what_no_runtime_reads_does_not_count(conf_dir, cache_dir):
    (conf_dir / "10-a.conflist.bak").write_text(conflist("a", {"type": "bridge"}))
    (conf_dir / "20-b.conflist").write_text("{")
    assert users("bridge", conf_dir, cache_dir) is None
    assert users("bridge", conf_dir / "none", cache_dir / "none") is None


@pytest.mark.parametrize("config", [conflist("a", {"type": "bridge"}), json.dumps({"name": "a", "type": "bridge"})])
def test_an_attachment_needs_its_plugins_for_the_del(conf_dir, cache_dir, config):
    write_entry(str(cache_dir), Entry("c1", config.encode(), "eth0", "a"))
    assert users("bridge", conf_dir, cache_dir) == ["the attachment a/c1/eth0"]


def test_an_unreadable_cache_is_not_taken_for_an_empty_one(conf_dir, tmp_path):
    (tmp_path / "cache").write_text("")
    with fails_with("cache_unreadable"):
        users("bridge", conf_dir, tmp_path / "cache")


def test_the_error_names_plugin_users_and_remedy():
    error = plugin_in_use({"ptp": ["b"], "bridge": ["a", "c"]})
    assert error.code == "plugin_in_use"
    assert "bridge by a, c; ptp by b" in error.msg and "force" in error.msg


def test_networks_that_runtimes_build_themselves_count(conf_dir, cache_dir):
    view = HostView()
    view.built_in = lambda _view, bin_dir: [(f"a runtime with {bin_dir}", "0.3.1", [{"type": "loopback"}])]
    assert users("loopback", conf_dir, cache_dir, view) == ["a runtime with /opt/cni/bin"]
