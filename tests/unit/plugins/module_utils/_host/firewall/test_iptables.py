# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""With what iptables-save printed of the rules of real plugins; the kernel itself is in modules/cni_gc_rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import commands
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import chains, owners
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.change import change
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

DUMPS = Path(__file__).parent / "dumps"
WEB1 = "CNI-550bca792007a5271a5dd6e3"
WEB1_DN = "CNI-DN-550bca792007a5271a5dd"


def dump(name):
    return (DUMPS / (name + ".txt")).read_text()


def sets_in(text, family="ipv4"):
    found = chains.FoundChains()
    chains.parse_iptables(found, chains.NFT, family, text)
    return owners.group_rules(found).sets


def only(text, name, family="ipv4"):
    [found] = [one for one in sets_in(text, family) if one.name == name]
    return found


@pytest.mark.parametrize(
    "name, addresses",
    [
        ("nft-1.9.1-ipv4", {"web1": "10.77.0.2", "web2": "10.77.0.3", "db": "10.78.0.2"}),
        ("nft-1.9.1-ipv6", {"web1": "fd77::2", "web2": "fd77::3"}),
        ("legacy-1.1.1-ipv4", {"web1": "10.77.0.2", "web2": "10.77.0.3", "db": "10.78.0.2"}),
        ("legacy-1.1.1-ipv6", {"web1": "fd77::2", "web2": "fd77::3"}),
    ],
)
def test_each_container_has_its_sets(name, addresses):
    sets = sets_in(dump(name), name[-4:])
    owned = sorted((one.plugin, one.owner.network, one.owner.container_id, one.addresses) for one in sets if one.chains)
    expected = [
        (plugin, "net-b" if container == "db" else "net-a", container, (address,))
        for plugin in ("ipmasq", "portmap")
        for container, address in addresses.items()
    ]
    assert owned == sorted(expected)
    forwarded = [one.addresses for one in sets if one.plugin == "firewall"]
    assert forwarded == [(address,) for container, address in sorted(addresses.items()) if container != "db"]
    assert not [one for one in sets if one.unclear or one.inert]
    # Only nft numbers rules.
    assert {rule.handle for one in sets for rule in one.rules} == {0}


def test_nothing_that_containers_share_is_in_a_set():
    text = dump("nft-1.9.1-ipv4")
    taken = {rule.text for one in sets_in(text) for rule in one.rules}
    left = [line for line in text.splitlines() if line.startswith("-A") and line not in taken]
    assert len(left) == 12
    assert not [line for line in left if "10.7" in line or "id:" in line]


def test_what_a_set_is_made_of_is_shown():
    one = only(dump("nft-1.9.1-ipv4"), WEB1)
    whose = "network net-a, container web1; address 10.77.0.2"
    assert one.text == f"iptables-nft ipv4, ipmasq: 3 rules; chain {WEB1}; {whose}"


# ---- what is not whole


def without(text, *parts):
    return "\n".join(line for line in text.split("\n") if not any(part in line for part in parts))


def test_a_chain_without_a_jump_is_told_by_its_comments_and_inert():
    one = only(without(dump("nft-1.9.1-ipv4"), "-j " + WEB1), WEB1)
    assert (one.owner.network, one.owner.container_id, one.inert, len(one.rules)) == ("net-a", "web1", True, 2)


def test_an_empty_chain_is_told_by_the_comment_of_its_jump():
    one = only(without(dump("nft-1.9.1-ipv4"), "-A " + WEB1_DN), WEB1_DN)
    assert (one.owner.container_id, one.inert, one.addresses, len(one.rules)) == ("web1", False, (), 2)


def test_an_empty_chain_without_a_jump_is_told_by_its_hash_among_known_containers():
    text = without(dump("nft-1.9.1-ipv4"), "-A " + WEB1_DN, "-j " + WEB1_DN)
    one = only(text, WEB1_DN)
    assert (one.owner.container_id, one.owner.claimed, one.inert, one.rules) == (None, "", True, ())
    [one] = owners.attribute([one], ["net-a", "net-b"], ["other", "db"])
    assert one.owner.container_id is None
    [one] = owners.attribute([one], ["net-b", "net-a"], ["other", "web1"])
    assert (one.owner.network, one.owner.container_id) == ("net-a", "web1")


def test_a_portmap_chain_that_add_left_is_told_by_its_hash_and_its_address():
    one = only(without(dump("nft-1.9.1-ipv4"), "-j " + WEB1_DN), WEB1_DN)
    assert (one.owner.container_id, one.addresses, one.inert) == (None, ("10.77.0.2",), True)


# ---- what wants to be taken for something else

NAT = "*nat\n:POSTROUTING ACCEPT [0:0]\n:%s - [0:0]\n%s\nCOMMIT\n"


def chain(*lines, name=WEB1):
    return NAT % (name, "\n".join(lines))


def jump(comment, name=WEB1, entry="POSTROUTING"):
    return f'-A {entry} -s 10.77.0.2/32 -m comment --comment "{comment}" -j {name}'


def test_a_comment_that_the_hash_belies_is_not_believed():
    for comments in (["web1", "web2"], ["web2"], ["web2", "web2"]):
        lines = [jump(rf"name: \"net-a\" id: \"{container}\"") for container in comments]
        one = only(chain(*lines), WEB1)
        assert one.owner.container_id is None
        assert one.unclear == "its comments and the hash in its name identify different containers"
        [one] = owners.attribute([one], ["net-a"], ["web1", "web2"])
        assert one.owner.container_id is None


def test_a_rule_of_somebody_else_into_the_chain_protects_it():
    own = jump(r"name: \"net-a\" id: \"web1\"")
    for foreign in (
        jump(r"name: \"net-a\" id: \"web1\"", entry="DOCKER"),
        jump("mine"),
        f"-A POSTROUTING -s 10.1.1.1/32 -g {WEB1}",
    ):
        assert "jumps to it" in only(chain(own, foreign), WEB1).unclear


def test_quotes_backslashes_and_options_in_comments_are_text():
    hostile = r"-j CNI-others \"x\" \\ \' -A POSTROUTING --comment y"
    text = chain(jump(r"name: \"net-a\" id: \"web1\""), f'-A POSTROUTING -m comment --comment "{hostile}" -j RETURN')
    one = only(text, WEB1)
    assert (one.owner.container_id, len(one.rules), one.unclear) == ("web1", 1, "")


def test_a_line_break_in_a_comment_makes_no_container_dead():
    """iptables-save prints it as it is, so that the rest looks like a rule of its own."""
    fake = jump(r"name: \"net-a\" id: \"dead\"").replace("\\", "\\\\").replace('"', r"\"")
    text = dump("nft-1.9.1-ipv4").replace("COMMIT", f'-A INPUT -m comment --comment "x\n{fake}\n" -j ACCEPT\nCOMMIT')
    assert [one.owner.container_id for one in sets_in(text) if one.name == WEB1] == ["web1"]
    assert not [one for one in sets_in(text) if one.owner.container_id == "dead"]


def test_names_that_only_look_like_a_container_s_chain_are_left():
    for name in (
        "CNI-FORWARD",
        "CNI-DN-",
        "CNI-" + "0" * 23,
        "CNI-" + "0" * 25,
        "CNI-" + "G" * 24,
        "CNI-XY-" + "0" * 21,
    ):
        assert sets_in(chain(name=name)) == []


def test_only_the_two_forms_of_the_firewall_plugin_are_taken():
    lines = [
        "-A CNI-FORWARD -s 10.0.0.9/32 -j DROP",
        "-A CNI-FORWARD -s 10.0.0.9/32 -p tcp -j ACCEPT",
        "-A CNI-FORWARD -s 10.0.0.0/24 -j ACCEPT",
        "-A CNI-FORWARD ! -s 10.0.0.9/32 -j ACCEPT",
        "-A CNI-FORWARD -d 10.0.0.9/32 -j ACCEPT",
        "-A FORWARD -s 10.0.0.9/32 -j CNI-FORWARD",
        "-A CNI-ADMIN -s 10.0.0.9/32 -j ACCEPT",
    ]
    text = "*filter\n:CNI-FORWARD - [0:0]\n%s\nCOMMIT\n"
    assert sets_in(text % "\n".join(lines)) == []
    [one] = sets_in(text % "\n".join([*lines, "-A CNI-FORWARD -s 10.0.0.9/32 -j ACCEPT"]))
    assert (one.name, len(one.rules)) == ("10.0.0.9", 1)


def test_a_comment_that_portmap_cut_tells_the_beginning_of_the_id():
    container = "c" * 255
    name = owners.chain_name("DN-", "net-a", container)
    cut = f'dnat name: "net-a" id: "{container}"'[:251] + "..."
    text = chain(jump(cut.replace('"', r"\""), name, "CNI-HOSTPORT-DNAT"), name=name)
    one = only(text, name)
    assert (one.owner.container_id, one.unclear) == (None, "")
    assert one.owner.claimed
    assert container.startswith(one.owner.claimed)
    [one] = owners.attribute([one], [], [container[:-1], container])
    assert (one.owner.network, one.owner.container_id) == ("net-a", container)


# ---- reading and removing


class Host:
    """A host with these tools, whose iptables-save prints `text`."""

    def __init__(self, monkeypatch, *tools):
        self.tools = tools
        self.text = dump("nft-1.9.1-ipv4")
        self.version = b"iptables v1.8.9 (nf_tables)\n"
        self.restore_rc = 0
        self.calls = []
        monkeypatch.setattr(commands, "find_command", lambda name: "/usr/sbin/" + name if name in self.tools else None)
        monkeypatch.setattr(commands, "run_command", self.run)

    def run(self, argv, timeout, stdin=None):
        name = argv[0].rpartition("/")[2]
        self.calls.append((name, argv[1:], stdin))
        if "--version" in argv:
            return commands.Done(0, self.version, "")
        if name.endswith("-save"):
            return commands.Done(0, self.text.encode(), "")
        return commands.Done(self.restore_rc, b"", "it said no")

    @property
    def script(self):
        return self.calls[-1][2].decode()


def test_the_tool_without_a_backend_in_its_name_is_asked_for_it(monkeypatch):
    host = Host(monkeypatch, "iptables-save", "ip6tables-nft-save")
    assert chains.tool("iptables-nft", "ipv4", "save") == "/usr/sbin/iptables-save"
    assert chains.tool("iptables-legacy", "ipv4", "save") is None
    host.version = b"iptables v1.6.1\n"
    assert chains.tool("iptables-nft", "ipv4", "save") is None
    assert chains.tool("iptables-legacy", "ipv4", "save") == "/usr/sbin/iptables-save"
    host.calls.clear()
    assert chains.tool("iptables-nft", "ipv6", "save") == "/usr/sbin/ip6tables-nft-save"
    assert host.calls == []


def read(backend, family="ipv4"):
    found = chains.FoundChains()
    chains.read_iptables(found, backend, family)
    return found


@pytest.mark.parametrize(
    ("said", "switched"),
    [
        (b"iptables v1.8.9 (nf_tables)\n", {("iptables-legacy", "ipv4"): "iptables-nft"}),
        (b"iptables v1.8.9 (legacy)\n", {("iptables-nft", "ipv4"): "iptables-legacy"}),
        (b"iptables v1.6.1\n", {("iptables-nft", "ipv4"): "iptables-legacy"}),
        (b"false (GNU coreutils) 9.1\n", {}),
        (b"", {}),
    ],
)
def test_a_switch_of_iptables_is_told_by_its_version(monkeypatch, said, switched):
    monkeypatch.setattr(chains.shutil, "which", lambda name: f"/usr/sbin/{name}" if name == "iptables" else None)
    monkeypatch.setattr(commands, "run_command", lambda *_arguments: commands.Done(0, said, ""))
    keys = [("chain", backend, "ipv4", "nat", "X", "-j Y") for backend in chains.BACKENDS]
    others = [("chain", "iptables-nft", "ipv6", "nat", "X"), ("chain", "nftables", "ip", "x", "y"), ("lease", "x")]
    assert chains.switched_backends([*keys, *others]) == switched


def test_a_tool_that_fails_is_told(monkeypatch):
    Host(monkeypatch, "iptables-nft-save", "iptables-nft-restore")
    monkeypatch.setattr(commands, "run_command", lambda *_arguments: commands.Done(4, b"", "no permission"))
    found = read("iptables-nft")
    key = ("chain", "iptables-nft", "ipv4", "nat", "x")
    assert "iptables-nft-save failed: exit status 4: no permission" in found.why_unread(key).msg
    one = only(dump("nft-1.9.1-ipv4"), WEB1)
    with fails_with("command_failed", "no permission"):
        change(drop=[one])


def test_legacy_is_not_asked_where_the_kernel_has_no_tables_of_it(monkeypatch, tmp_path):
    host = Host(monkeypatch, "iptables-legacy-save")
    names = tmp_path / "names"
    monkeypatch.setitem(chains._NAMES, "ipv4", str(names))
    assert read("iptables-legacy").chains == {}
    names.write_text("")
    assert read("iptables-legacy").chains == {}
    assert host.calls == []
    names.write_text("nat\nfilter\n")
    assert len(owners.group_rules(read("iptables-legacy")).sets) == 8
    host.tools = ()
    assert read("iptables-legacy").unread["iptables-legacy", "ipv4"].code == "rules_tool_missing"


def test_a_table_that_iptables_cannot_show_is_told(monkeypatch):
    host = Host(monkeypatch, "iptables-nft-save", "iptables-nft-restore")
    one = only(host.text, WEB1)
    host.text = "# Table `mangle' is incompatible, use 'nft' tool.\n" + host.text
    assert list(read("iptables-nft").unread) == [("iptables-nft", "ipv4", "mangle")]
    change(drop=[one])
    host.text = "# Table `nat' is incompatible, use 'nft' tool.\n"
    with fails_with("rules_incompatible", "the table nat of iptables-nft"):
        change(drop=[one])


def test_a_set_is_removed_by_one_transaction_of_its_own_lines(monkeypatch):
    host = Host(monkeypatch, "iptables-nft-save", "iptables-nft-restore")
    one = only(host.text, WEB1)
    change(drop=[one])
    assert host.calls[-1][:2] == ("iptables-nft-restore", ["--noflush", "--wait=10"])
    lines = [line for line in host.text.splitlines() if line.startswith("-A") and WEB1 in line]
    assert host.script == "*nat\n" + "".join("-D" + line[2:] + "\n" for line in lines) + f"-X {WEB1}\nCOMMIT\n"
    host.text = without(host.text, WEB1)
    host.calls.clear()
    change(drop=[one])
    assert [name for name, _arguments, _stdin in host.calls] == ["iptables-nft-save"]


def test_sets_of_both_tables_are_one_transaction_a_table(monkeypatch):
    host = Host(monkeypatch, "iptables-nft-save", "iptables-nft-restore")
    change(drop=[one for one in sets_in(host.text) if "10.77.0.2" in one.addresses])
    assert host.script.count("COMMIT") == 2
    assert host.script.count("\n-D") == 13
    assert host.script.count("\n-X") == 2


def test_a_set_with_new_rules_is_left(monkeypatch):
    host = Host(monkeypatch, "iptables-nft-save", "iptables-nft-restore")
    one = only(host.text, WEB1)
    host.text = host.text.replace("COMMIT", f"-A {WEB1} -j RETURN\nCOMMIT")
    with fails_with("rules_changed"):
        change(drop=[one])
    assert [name for name, _arguments, _stdin in host.calls] == ["iptables-nft-save"]


def test_a_plugin_that_removes_a_rule_meanwhile_is_no_failure(monkeypatch):
    host = Host(monkeypatch, "iptables-nft-save", "iptables-nft-restore")
    one = only(host.text, WEB1)

    def run(argv, timeout, stdin=None):
        if "--noflush" not in argv or "-j " + WEB1 not in host.text:
            return Host.run(host, argv, timeout, stdin)
        host.text = without(host.text, "-j " + WEB1)
        return commands.Done(1, b"", "Bad rule")

    monkeypatch.setattr(commands, "run_command", run)
    change(drop=[one])
    assert host.script.count("\n-D") == 2


def test_what_keeps_a_set_is_told(monkeypatch):
    host = Host(monkeypatch, "iptables-nft-save", "iptables-nft-restore")
    one = only(host.text, WEB1)
    host.restore_rc = 2
    with fails_with("rules_not_removed", "exit status 2: it said no; no rule was removed"):
        change(drop=[one])
    assert [name for name, _arguments, _stdin in host.calls].count("iptables-nft-restore") == 3
    host.tools = ("iptables-nft-save",)
    with fails_with("rules_not_removed", "is not installed"):
        change(drop=[one])
