# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import attach, attach_verbs, netns
from ansible_collections.podwire.cni.plugins.module_utils._host.attach import Planner
from ansible_collections.podwire.cni.plugins.module_utils._host.attach_networks import Networks
from ansible_collections.podwire.cni.plugins.module_utils._host.attach_outcome import Settings
from ansible_collections.podwire.cni.plugins.module_utils._host.attach_request import parse
from ansible_collections.podwire.cni.plugins.module_utils._host.attach_verbs import Verbs
from ansible_collections.podwire.cni.plugins.module_utils._host.lock import run
from ansible_collections.podwire.cni.plugins.module_utils._host.netns import Seen
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.invoke import Executor

MAIN = {"type": "main", "ipam": {"type": "ipam"}}
META = {"type": "meta", "capabilities": {"portMappings": True}}


class Host(Executor):
    """A host in memory: namespaces with their interfaces, and plugins that act on them."""

    def __init__(self, root):
        super().__init__()
        self.conf_dir = str(root / "net.d")
        self.bin_dir = str(root / "bin")
        self.cache_dir = str(root / "cache")
        self.lock = str(root / "lock" / "lock")
        os.mkdir(self.conf_dir)
        os.mkdir(self.bin_dir)
        for name in ("main", "meta", "ipam"):
            open(os.path.join(self.bin_dir, name), "w").close()
        self.namespaces = {}
        self.calls = []
        self.broken = {}
        self.next_ip = 2

    def network(self, name="demo", **changed):
        conf = dict({"cniVersion": "1.0.0", "name": name, "plugins": [MAIN, META]}, **changed)
        with open(os.path.join(self.conf_dir, f"10-{name}.conflist"), "w") as stream:
            json.dump(conf, stream)

    def namespace(self, name, inode=1, links=("lo",)):
        self.namespaces[f"/run/netns/{name}"] = (
            {"boot_id": "b", "dev": 4, "inode": inode, "cookie": inode},
            set(links),
        )

    def look(self, wanted):
        nothing = (None, set())
        return {
            path: Seen(identity, set(names) & links)
            for path, names in wanted.items()
            for identity, links in [self.namespaces.get(path, nothing)]
        }

    def exec_plugin(self, path, stdin, env, timeout=None):
        plugin, verb = os.path.basename(path), env["CNI_COMMAND"]
        conf = json.loads(stdin)
        self.calls.append((verb, plugin, env["CNI_CONTAINERID"], env["CNI_NETNS"]))
        error = self.broken.get((verb, plugin))
        if error is not None:
            raise PluginError(999, error, plugin=plugin, stderr="on stderr")
        links = self.namespaces.get(env["CNI_NETNS"], (None, set()))[1]
        result = conf.get("prevResult")
        if verb == "ADD" and plugin == "main":
            links.add(env["CNI_IFNAME"])
            ips = conf.get("runtimeConfig", {}).get("ips") or [f"10.1.0.{self.next_ip}/24"]
            self.next_ip += 1
            result = {
                "cniVersion": "1.0.0",
                "interfaces": [{"name": env["CNI_IFNAME"], "sandbox": env["CNI_NETNS"]}],
                "ips": [{"address": ip, "interface": 0} for ip in ips],
            }
        if verb == "DEL" and plugin == "main":
            links.discard(env["CNI_IFNAME"])
        return json.dumps(result).encode() if verb == "ADD" else b""

    def verbs(self, verb):
        """Return the plugins that were run with *verb*."""
        return [plugin for command, plugin, *_rest in self.calls if command == verb]

    def plan(self, entries, check_mode=True, **settings):
        options = Settings(self.conf_dir, [self.bin_dir], self.cache_dir, check_mode=check_mode, **settings)
        verbs = Verbs([self.bin_dir], self.cache_dir, 5, executor=self)
        request = parse(entries)
        self.calls.clear()
        return run(lambda: Planner(options, verbs).make(request), "test", 5, check_mode, options.workers, self.lock)

    def run(self, *entries, **settings):
        return self.plan(entries, check_mode=False, **settings)

    def check(self, *entries, **settings):
        return self.plan(entries, **settings)

    def cached(self):
        folder = os.path.join(self.cache_dir, "results")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def records(self):
        folder = os.path.join(self.cache_dir, "podwire")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


@pytest.fixture
def host(tmp_path, monkeypatch):
    made = Host(tmp_path)
    for module in (attach, attach_verbs, netns):
        monkeypatch.setattr(module, "look", made.look)
    monkeypatch.setattr(attach_verbs, "look_at", lambda path, name: made.look({path: (name,)})[path])
    # It needs plugins that belong to root; the integration tests have them.
    monkeypatch.setattr(Networks, "test_plugins", lambda self, config: None)
    made.network()
    made.namespace("web")
    return made


def web(**changed):
    return dict({"network": "demo", "container_id": "web", "netns": "web"}, **changed)


def actions(plan):
    return [outcome.action for outcome in plan.outcomes]


def kinds(plan):
    return [(step.kind, step.target) for step in plan.steps]


def codes(plan):
    return [code for code, _message in plan.warnings]


# ---- present


def test_add_then_nothing(host):
    predicted = host.check(web())
    assert actions(predicted) == ["added"]
    assert predicted.outcomes[0].result is None
    assert predicted.outcomes[0].row()["ips"] is None
    assert host.calls == []
    plan = host.run(web())
    assert plan.actions() == predicted.actions() == [{"kind": "add", "target": "demo/web/eth0", "class": "safe"}]
    assert plan.diff() == predicted.diff()
    assert plan.outcomes[0].row()["ips"] == ["10.1.0.2/24"]
    assert host.verbs("ADD") == host.verbs("CHECK") == ["main", "meta"]
    assert host.cached() == host.records() == ["demo-web-eth0"]

    plan = host.run(web())
    assert actions(plan) == ["none"]
    assert not plan.changed
    assert plan.outcomes[0].row()["ips"] == ["10.1.0.2/24"]
    assert host.verbs("ADD") == []
    assert host.verbs("CHECK") == ["main", "meta"]


def test_a_layout_that_means_the_same_is_no_change(host):
    host.run(web())
    path = os.path.join(host.conf_dir, "10-demo.conflist")
    with open(path) as stream:
        conf = json.load(stream)
    with open(path, "w") as stream:
        json.dump(dict(reversed(list(conf.items()))), stream, indent=7)
    assert actions(host.run(web())) == ["none"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"args": {"K": "v"}}, "args"),
        ({"capability_args": {"portMappings": [{"hostPort": 1}]}}, "capability_args"),
        # To Python, True and 1 are equal.
        ({"capability_args": {"portMappings": True}}, "capability_args"),
    ],
)
def test_other_arguments_detach_with_the_old_ones_and_attach(host, changed, reason):
    host.run(web(capability_args={"portMappings": 1}))
    assert actions(host.run(web(capability_args={"portMappings": 1}))) == ["none"]
    plan = host.run(web(**changed))
    assert actions(plan) == ["repaired"]
    assert plan.outcomes[0].reason == reason
    assert kinds(plan) == [("del", "demo/web/eth0"), ("add", "demo/web/eth0")]
    assert {step.step_class for step in plan.steps} == {"disruptive"}
    assert host.verbs("DEL") == ["meta", "main"]


def test_another_configuration_detaches_with_the_old_one(host):
    host.run(web())
    host.network(plugins=[MAIN])
    plan = host.run(web())
    assert actions(plan) == ["repaired"]
    assert plan.outcomes[0].reason == "config"
    assert host.verbs("DEL") == ["meta", "main"]
    assert host.verbs("ADD") == ["main"]


def test_a_namespace_that_was_made_anew_is_not_touched_by_the_del(host):
    host.run(web())
    host.namespace("web", inode=2)
    plan = host.run(web())
    assert actions(plan) == ["repaired"]
    assert plan.outcomes[0].reason == "netns"
    assert ("DEL", "main", "web", "") in host.calls
    assert ("ADD", "main", "web", "/run/netns/web") in host.calls
    assert actions(host.run(web())) == ["none"]


def test_an_interface_that_is_gone_is_made_anew(host):
    host.run(web())
    host.namespaces["/run/netns/web"][1].discard("eth0")
    plan = host.run(web(), on_drift="report")
    assert (actions(plan), plan.outcomes[0].reason) == (["repaired"], "interface")
    assert ("DEL", "main", "web", "/run/netns/web") in host.calls


def test_an_interface_that_was_never_there_is_not_missed(host):
    host.network(plugins=[META])
    host.run(web())
    assert actions(host.run(web())) == ["none"]


def test_the_same_namespace_under_another_path_is_no_change(host):
    host.run(web())
    host.namespaces["/proc/7/ns/net"] = host.namespaces["/run/netns/web"]
    assert actions(host.run(web(netns="/proc/7/ns/net"))) == ["none"]
    del host.namespaces["/run/netns/web"]
    plan = host.run(web(netns="/proc/7/ns/net"))
    assert actions(plan) == ["none"]
    assert host.verbs("CHECK") == []
    host.run(web(netns="/proc/7/ns/net", state="absent"))
    assert ("DEL", "main", "web", "/proc/7/ns/net") in host.calls


def test_a_foreign_interface_of_that_name_is_left_alone(host):
    host.namespace("web", links=("lo", "eth0"))
    plan = host.run(web())
    assert actions(plan) == ["failed"]
    assert plan.outcomes[0].error["code"] == "ifname_in_use"
    assert host.calls == []
    assert codes(host.check(web())) == ["ifname_in_use"]
    assert actions(host.run(web(), force=True)) == ["added"]


# ---- CHECK


def test_a_check_that_never_passed_is_no_drift(host):
    host.broken["CHECK", "meta"] = "never works"
    plan = host.run(web())
    assert (actions(plan), codes(plan)) == (["added"], ["check_unusable"])
    plan = host.run(web())
    assert (actions(plan), codes(plan), plan.changed) == (["none"], ["check_unusable"], False)
    host.broken["CHECK", "meta"] = "another failure"
    plan = host.run(web())
    assert (actions(plan), codes(plan)) == (["drifted"], ["drifted"])
    host.broken["CHECK", "main"] = "never works"
    assert actions(host.run(web())) == ["drifted"]


@pytest.mark.parametrize("changed", [{"cniVersion": "0.3.1"}, {"disableCheck": True}])
def test_networks_without_check_are_not_checked(host, changed):
    host.network(**changed)
    host.broken["CHECK", "main"] = "not asked"
    host.run(web())
    assert actions(host.run(web())) == ["none"]
    assert host.verbs("CHECK") == []


def test_drift_is_reported_repaired_or_an_error(host):
    host.run(web())
    host.broken["CHECK", "main"] = "address is gone"
    plan = host.run(web())
    assert (actions(plan), plan.changed, plan.steps) == (["drifted"], False, [])
    assert "plugin main: address is gone" in plan.warnings[0][1]
    assert plan.outcomes[0].result is not None

    plan = host.run(web(), on_drift="fail")
    assert actions(plan) == ["failed"]
    assert (plan.outcomes[0].error["code"], plan.outcomes[0].error["plugin"]) == ("drifted", "main")

    plan = host.check(web(), on_drift="repair")
    assert (actions(plan), kinds(plan)) == (["repaired"], [("del", "demo/web/eth0"), ("add", "demo/web/eth0")])
    assert host.verbs("DEL") == []
    del host.broken["CHECK", "main"]
    assert actions(host.run(web(), on_drift="repair")) == ["none"]


def test_a_repair_asks_for_the_old_addresses(host):
    host.network(plugins=[dict(MAIN, capabilities={"ips": True})])
    host.run(web())
    host.namespaces["/run/netns/web"][1].discard("eth0")
    plan = host.run(web())
    assert plan.outcomes[0].row()["ips"] == ["10.1.0.2/24"]
    # What was asked for then is no difference to what is wanted.
    assert actions(host.run(web())) == ["none"]


def test_addresses_that_are_not_to_be_had_again_are_given_up(host):
    host.network(plugins=[dict(MAIN, capabilities={"ips": True})])
    host.run(web())
    host.namespaces["/run/netns/web"][1].discard("eth0")
    original = host.exec_plugin

    def taken(path, stdin, env, timeout=None):
        if env["CNI_COMMAND"] == "ADD" and b"10.1.0.2" in stdin:
            raise PluginError(999, "10.1.0.2 is taken", plugin="main")
        return original(path, stdin, env, timeout)

    host.exec_plugin = taken
    plan = host.run(web())
    assert actions(plan) == ["repaired"]
    assert codes(plan) == ["addresses_changed"]
    assert plan.outcomes[0].row()["ips"] == ["10.1.0.3/24"]


def test_dhcp_is_not_asked_in_check_mode(host):
    host.network(plugins=[{"type": "main", "ipam": {"type": "dhcp"}}])
    host.run(web())
    assert actions(host.check(web())) == ["none"]
    assert host.verbs("CHECK") == []
    host.run(web())
    assert host.verbs("CHECK") == ["main"]


# ---- failures


def test_a_failed_add_is_taken_back(host):
    host.broken["ADD", "meta"] = "no such port"
    plan = host.run(web())
    assert actions(plan) == ["failed"]
    error = plan.outcomes[0].error
    assert (error["code"], error["plugin"], error["plugin_code"]) == ("add_failed", "meta", 999)
    assert error["stderr"] == "on stderr"
    assert "no such port" in error["message"]
    assert host.verbs("DEL") == ["meta", "main"]
    assert host.namespaces["/run/netns/web"][1] == {"lo"}
    assert host.cached() == host.records() == []


def test_when_the_del_fails_too_both_are_reported_and_the_next_run_begins_with_it(host):
    host.broken["ADD", "meta"] = "no such port"
    host.broken["DEL", "meta"] = "cannot clean"
    plan = host.run(web())
    error = plan.outcomes[0].error
    assert error["code"] == "cleanup_failed"
    assert "no such port" in error["message"]
    assert "cannot clean" in error["message"]
    host.broken.clear()
    # The wish has changed meanwhile; what was left is taken away with what it was made with.
    host.network(plugins=[MAIN])
    plan = host.run(web())
    assert (actions(plan), plan.outcomes[0].reason) == (["added"], "interrupted")
    assert kinds(plan) == [("del", "demo/web/eth0"), ("add", "demo/web/eth0")]
    assert host.verbs("DEL") == ["meta", "main"]
    assert host.verbs("ADD") == ["main"]
    assert actions(host.run(web())) == ["none"]


def test_absent_takes_away_what_an_interrupted_add_left(host):
    class Killed(BaseException):
        pass

    original = host.exec_plugin

    def killed(path, stdin, env, timeout=None):
        if env["CNI_COMMAND"] == "ADD" and path.endswith("meta"):
            raise Killed
        return original(path, stdin, env, timeout)

    host.exec_plugin = killed
    with pytest.raises(Killed):
        host.run(web())
    host.exec_plugin = original
    assert "eth0" in host.namespaces["/run/netns/web"][1]
    assert host.cached() == []
    plan = host.run(web(state="absent"))
    assert actions(plan) == ["deleted"]
    assert host.namespaces["/run/netns/web"][1] == {"lo"}
    assert host.records() == []
    assert actions(host.run(web(state="absent"))) == ["none"]


def test_a_record_that_is_cut_short_counts_as_an_interrupted_add(host):
    os.makedirs(os.path.join(host.cache_dir, "podwire"))
    open(os.path.join(host.cache_dir, "podwire", "demo-web-eth0"), "w").close()
    plan = host.run(web())
    assert kinds(plan) == [("del", "demo/web/eth0"), ("add", "demo/web/eth0")]
    assert actions(host.run(web())) == ["none"]


def test_one_failure_does_not_stop_the_others(host):
    host.namespace("db", inode=2)
    host.network("broken")
    with open(os.path.join(host.conf_dir, "20-broken.conflist"), "w") as stream:
        stream.write('{"name": "x", "plugins": []}')
    host.network("zlast")
    os.rename(os.path.join(host.conf_dir, "10-zlast.conflist"), os.path.join(host.conf_dir, "30-zlast.conflist"))
    plan = host.run(
        web(network="zlast", ifname="eth9"),
        web(),
        web(container_id="db", netns="db"),
        web(container_id="no", netns="nowhere"),
    )
    assert actions(plan) == ["failed", "added", "added", "failed"]
    assert plan.outcomes[0].error["code"] == "bad_config"
    assert "20-broken.conflist" in plan.outcomes[0].error["message"]
    assert plan.outcomes[3].error["code"] == "missing_netns"


def test_what_a_plugin_says_is_freed_of_the_secrets_it_was_given(host):
    host.network(plugins=[dict(MAIN, token="s3cr3t-token")])
    host.broken["ADD", "main"] = "login with s3cr3t-token and hunter22 failed"
    plan = host.run(web(args={"PASSWORD": "hunter22"}))
    text = json.dumps(plan.outcomes[0].row())
    assert "failed" in text
    assert "s3cr3t" not in text
    assert "hunter22" not in text


# ---- absent


def test_del_uses_what_is_cached_and_then_nothing_is_to_do(host):
    host.run(web(capability_args={"portMappings": [1]}, args={"K": "v"}))
    os.unlink(os.path.join(host.conf_dir, "10-demo.conflist"))
    stdin = []
    original = host.exec_plugin

    def spy(path, data, env, timeout=None):
        stdin.append((os.path.basename(path), json.loads(data), env["CNI_ARGS"]))
        return original(path, data, env, timeout)

    host.exec_plugin = spy
    plan = host.run({"network": "demo", "container_id": "web", "state": "absent"})
    assert (actions(plan), kinds(plan)) == (["deleted"], [("del", "demo/web/eth0")])
    assert stdin[0][0] == "meta"
    assert stdin[0][1]["runtimeConfig"] == {"portMappings": [1]}
    assert stdin[0][1]["prevResult"]["ips"]
    assert stdin[0][2] == "K=v"
    assert host.cached() == host.records() == []
    plan = host.run(web(state="absent"))
    assert (actions(plan), plan.changed) == (["none"], False)


def test_a_failed_del_keeps_the_entry(host):
    host.run(web())
    host.broken["DEL", "main"] = "busy"
    plan = host.run(web(state="absent"))
    assert (actions(plan), plan.outcomes[0].error["code"]) == (["failed"], "del_failed")
    assert host.cached() == ["demo-web-eth0"]
    host.broken.clear()
    assert actions(host.run(web(state="absent"))) == ["deleted"]


def test_del_after_the_namespace_has_gone(host):
    host.run(web())
    del host.namespaces["/run/netns/web"]
    assert actions(host.run(web(state="absent"))) == ["deleted"]
    assert {call[3] for call in host.calls} == {""}


def test_force_deletes_without_an_entry(host):
    plan = host.run(web(state="absent"), force=True)
    assert (actions(plan), plan.outcomes[0].reason) == (["deleted"], "forced")
    assert host.verbs("DEL") == ["meta", "main"]


# ---- what the cache holds is not trusted


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\x00",
        b"[]",
        b'{"kind":"cniCacheV1"}',
        b'{"kind":"cniCacheV1","config":"!!"}',
        b'{"kind":"cniCacheV1","containerId":"web","ifName":"eth0","networkName":"demo","config":"e30="}',
        b'{"cniVersion":"1.0.0","ips":[]}',
    ],
)
@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_damaged_entry_is_named_and_force_replaces_it(host, content, state):
    os.makedirs(os.path.join(host.cache_dir, "results"))
    path = os.path.join(host.cache_dir, "results", "demo-web-eth0")
    with open(path, "wb") as stream:
        stream.write(content)
    plan = host.run(web(state=state))
    assert (actions(plan), plan.outcomes[0].error["code"]) == (["failed"], "cache_damaged")
    assert path in plan.outcomes[0].error["message"]
    plan = host.run(web(state=state), force=True)
    assert actions(plan) == ["repaired" if state == "present" else "deleted"]
    assert actions(host.run(web(state=state))) == ["none"]


def test_the_entry_of_another_attachment_is_left_alone(host):
    # network a-b with container c, and network a with container b-c, have one file name.
    host.network("a-b")
    host.network("a")
    host.run(web(network="a-b", container_id="c"))
    plan = host.run(web(network="a", container_id="b-c", ifname="eth0", netns="web"))
    assert plan.outcomes[0].error["code"] == "cache_collision"
    assert actions(host.run(web(network="a-b", container_id="c"))) == ["none"]


def test_hostile_results_do_not_raise(host):
    host.run(web())
    path = os.path.join(host.cache_dir, "results", "demo-web-eth0")
    with open(path) as stream:
        entry = json.load(stream)
    for result in ({"ips": 7, "interfaces": "x"}, {"ips": [None, {"address": 7}], "interfaces": [None]}, {}):
        with open(path, "w") as stream:
            json.dump(dict(entry, result=result), stream)
        row = host.check(web()).outcomes[0].row()
        assert row["ips"] == []
        assert row["action"] in ("none", "drifted", "failed")


# ---- check mode on a host where nothing is yet


def test_what_is_missing_is_a_warning_in_check_mode_and_an_error_in_a_run(host):
    os.unlink(os.path.join(host.conf_dir, "10-demo.conflist"))
    plan = host.check(web(netns="new"))
    assert actions(plan) == ["added"]
    assert codes(plan) == ["missing_network", "missing_netns"]
    assert kinds(plan) == [("add", "demo/web/eth0")]
    plan = host.run(web(netns="new"))
    assert plan.outcomes[0].error["code"] == "missing_network"
    os.rmdir(host.conf_dir)
    assert codes(host.check(web())) == ["missing_conf_dir"]


def test_a_missing_plugin_at_check_is_a_warning_in_check_mode(host):
    host.run(web())
    os.unlink(os.path.join(host.bin_dir, "main"))
    plan = host.check(web())
    assert (actions(plan), codes(plan)) == (["none"], ["missing_plugin"])
    plan = host.run(web())
    assert plan.outcomes[0].error["code"] == "missing_plugin"


# ---- order


def test_within_a_container_dels_run_in_reverse_and_adds_in_order(host):
    host.network("other")
    both = [web(), web(network="other", ifname="eth1")]
    plan = host.run(*both)
    assert kinds(plan) == [("add", "demo/web/eth0"), ("add", "other/web/eth1")]
    host.namespace("web", inode=2)
    plan = host.run(*both)
    assert kinds(plan) == [
        ("del", "other/web/eth1"),
        ("del", "demo/web/eth0"),
        ("add", "demo/web/eth0"),
        ("add", "other/web/eth1"),
    ]
    plan = host.run(*[dict(entry, state="absent") for entry in both])
    assert kinds(plan) == [("del", "other/web/eth1"), ("del", "demo/web/eth0")]


def test_containers_are_lanes_of_their_own(host):
    for number in range(10):
        host.namespace(f"n{number}", inode=number + 10)
    entries = [web(container_id=f"c{number}", netns=f"n{number}") for number in range(10)]
    plan = host.run(*entries, workers=4)
    assert len({step.lane for step in plan.steps}) == 10
    assert actions(plan) == ["added"] * 10
    assert [outcome.key.container_id for outcome in plan.outcomes] == [entry["container_id"] for entry in entries]
    assert actions(host.run(*entries, workers=4)) == ["none"] * 10


def test_a_failed_del_leaves_out_the_add_of_the_same_attachment_only(host):
    host.namespace("db", inode=2)
    host.run(web(), web(container_id="db", netns="db"))
    host.network(plugins=[MAIN])
    original = host.exec_plugin

    def failing(path, stdin, env, timeout=None):
        if env["CNI_COMMAND"] == "DEL" and env["CNI_CONTAINERID"] == "web":
            raise PluginError(999, "busy", plugin="main")
        return original(path, stdin, env, timeout)

    host.exec_plugin = failing
    plan = host.run(web(), web(container_id="db", netns="db"))
    assert actions(plan) == ["failed", "repaired"]
    assert [step.state for step in plan.steps] == ["failed", "left_out", "done", "done"]
