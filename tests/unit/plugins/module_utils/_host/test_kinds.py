# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of plugins, and the one reader of their keys: who reads a configuration reads it through that."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import kinds
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall import tools
from ansible_collections.podwire.cni.plugins.module_utils._host.firewall.kinds import made_by
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage.inventory import bridges_of
from ansible_collections.podwire.cni.plugins.module_utils._host.leases import Lease, lease_stores
from ansible_collections.podwire.cni.plugins.module_utils._host.model import pool_rows
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.owners import injected

PLUGINS = Path(__file__).parents[5] / "plugins"
HOST = PLUGINS / "module_utils" / "_host"
SCHEMAS = PLUGINS / "plugin_utils" / "_conf" / "schemas"


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ({}, None),
        ({"datadir": "/a"}, "/a"),
        ({"DATADIR": "/a", "other": "/b"}, "/a"),
        ({"datadir": "/a", "dataDir": "/b", "DATADIR": "/c"}, "/a"),
        ({"datadir": None, "dataDir": "/b"}, "/b"),
        ({"datadir": None, "dataDir": ["/b"]}, None),
        ({"dataDir": {"A": 1, "b": {"c": 2}}, "datadir": {"a": 3, "B": {"d": 4}}}, {"a": 3, "B": {"c": 2, "d": 4}}),
        ({"data\u0130r": "/a", "data dir": "/b"}, None),
    ],
)
def test_a_member_is_what_a_struct_of_go_gets(data, value):
    assert kinds.member_of(data, "datadir") == value


def test_letters_of_other_scripts_that_go_folds():
    assert kinds.text_of({"\u017fubnet": "x"}, "subnet") == "x"
    assert kinds.text_of({"Ba\u212aend": "x", "bac\u212aend": "y"}, "backend") == "y"


def test_a_member_replaces_all_spellings():
    data = {"DATADIR": 1, "datadir": 2, "data_dir": 3}
    kinds.put_member(data, "dataDir", 4)
    assert data == {"data_dir": 3, "dataDir": 4}
    kinds.put_member(data, "datadir", None)
    assert data == {"data_dir": 3}


@pytest.mark.parametrize(
    ("ipam", "path"),
    [
        ({"type": "host-local"}, "/var/lib/cni/networks"),
        ({"TYPE": "host-local", "Datadir": "/srv//leases/"}, "/srv/leases"),
        ({"type": "host-local", "dataDir": ""}, "/var/lib/cni/networks"),
        ({"type": "host-local", "dataDir": "leases"}, ""),
        ({"type": "host-local", "dataDir": "/a\0b"}, ""),
        ({"type": "dhcp", "dataDir": "/srv"}, ""),
        ("host-local", ""),
    ],
)
def test_where_leases_are(ipam, path):
    assert kinds.lease_dir({"IPAM": ipam}) == path


def test_every_row_of_the_table_is_a_schema_of_the_controller_and_names_its_keys():
    for name, kind in kinds.KINDS.items():
        files = [path for path in SCHEMAS.rglob(f"{name}.json") if path.parent.name in ("plugins", "ipam")]
        known = {key for path in files for key in json.loads(path.read_text()).get("properties", ())}
        assert files or name == "dhcp", name
        assert set(kind.moving or ()) - known == set(), name
        assert not kind.parent or kind.parent in known, name


# ---- all that read a configuration

SPELLED = {
    "Type": "bridge",
    "BRIDGE": "b9",
    "IPMASQ": True,
    "MacSpoofChk": True,
    "Ipam": {"TYPE": "host-local", "RANGES": [[{"Subnet": "10.1.0.0/29", "RANGEEND": "10.1.0.3"}]], "datadir": "/srv"},
}


def test_addresses_are_read_as_go_reads_them(tmp_path):
    (row,) = pool_rows([("n", SPELLED)], [Lease("/srv", "n", "10.1.0.2", "c", "eth0")])
    assert (row["data_dir"], row["ranges"], row["size"], row["used"]) == ("/srv", ["10.1.0.1-10.1.0.3"], 2, 1)
    (tmp_path / "n").mkdir()
    plugin = {"IPAM": {"Type": "host-local", "DATADIR": str(tmp_path)}}
    assert (str(tmp_path), "n") in lease_stores([("n", plugin)], str(tmp_path / "none"))


def test_rules_and_bridges_are_read_as_go_reads_them(monkeypatch):
    assert made_by(SPELLED, {}) == ["ipmasq", "macspoofchk"]
    assert made_by({"TYPE": "firewall", "BACKEND": "nftables"}, {}) == []
    portmap = {"Type": "portmap", "Capabilities": {"portMappings": True}}
    assert made_by(portmap, {"portMappings": [{}]}) == ["portmap"]
    # The names of capabilities are keys of a map, whose case counts.
    assert made_by({"type": "portmap", "capabilities": {"PortMappings": True}}, {"portMappings": [{}]}) == []
    assert bridges_of([("n", SPELLED), ("m", {"TYPE": "bridge"}), ("o", {"type": "ptp"})]) == {"b9": "n", "cni0": "m"}
    monkeypatch.setattr(tools.shutil, "which", lambda name: None)
    assert tools.missing_tool([{"Type": "firewall", "Backend": "firewalld"}], {}, []) == ("firewall", "firewalld")
    assert tools.missing_tool([{"TYPE": "portmap", "RuntimeConfig": {"PortMappings": [1]}}], {}, [])[0] == "portmap"


def test_what_others_put_in_is_read_as_go_reads_it():
    current = b'{"plugins": [{"TYPE": "istio-cni"}, {"Type": "bridge"}]}'
    wanted = b'{"plugins": [{"type": "bridge"}]}'
    assert injected(current, wanted, lambda kind: True) == [{"TYPE": "istio-cni"}]


# ---- nobody else reads keys

# Keys that results, kernel objects, records and options of modules have, too.
COMMON = (
    "address args bandwidth cni cniversion device dns dst enabled gateway gateways gid group gw id ifname ipranges"
    " kubeconfig mac master mode mtu name owner portmappings priority protocol rangeend routes subnet table type uid"
)
# Names of variables that hold (an object of) a plugin's configuration.
HOLDERS = ("plugin", "ipam", "delegate", "network")
OTHERS = {
    "changes.py": "compares texts that people wrote",
    "containers/nomad.py": "the configuration of Nomad's agent",
    "footprints/recorder.py": "the policy of a chain of nftables",
    "runtimes/cri.py": "what containerd answers about a plugin",
    "runtimes/crio.py": "the section of CRI-O's configuration",
    "runtimes/rules.py": "removes keys that an older libcni does not know",
}


def keys_of_plugins():
    def names(schema):
        for key, value in schema.items() if isinstance(schema, dict) else enumerate(schema):
            if key == "properties":
                yield from (name.lower() for name in value)
            if isinstance(value, (dict, list)):
                yield from names(value)

    files = [path for path in SCHEMAS.rglob("*.json") if path.parent.name in ("plugins", "ipam")]
    return {name for path in files for name in names(json.loads(path.read_text()))} | {"ipam", "capabilities"}


KEYS = keys_of_plugins() - set(COMMON.split())


def direct_reads(source):
    """Return the places in *source* that read a key of a plugin's configuration without the one reader."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript):
            holder, key = node.value, node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            holder, key = node.func.value, node.args[0]
            if node.func.attr not in ("get", "pop", "setdefault"):
                continue
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            holder, key = node.comparators[0], node.left
        else:
            continue
        # Python 3.8 wraps what stands in brackets.
        key = getattr(key, "value", key) if not isinstance(key, ast.Constant) else key
        name = getattr(holder, "attr", getattr(holder, "id", ""))
        text = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
        any_key = not isinstance(node, ast.Compare) and isinstance(key, ast.Name)
        if (name in HOLDERS and (any_key or text.isidentifier())) or text.lower() in KEYS:
            found.append((node.lineno, name, text))
    return found


def test_direct_reads_are_found():
    planted = [
        'plugin["type"]',
        "plugin.network.get(option)",
        'plugin.network.get("x")',
        '"Master" in ipam',
        'data.get("dataDir")',
        'd["ipMasq"]',
    ]
    assert [len(direct_reads(text)) for text in planted] == [1] * len(planted)
    assert direct_reads('text_of(plugin, "type"); row["name"]; member_of(plugin, "mtu"); "x" in names') == []


def test_nobody_reads_keys_of_a_plugin_but_the_one_reader():
    found = {}
    for path in sorted(HOST.rglob("*.py")):
        places = direct_reads(path.read_text(encoding="utf-8"))
        if places:
            found[str(path.relative_to(HOST))] = places
    assert {name: places for name, places in found.items() if name not in OTHERS} == {}
    assert set(OTHERS) - set(found) == set()
