# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What the linter says of networks in files: how bad it is, what to write, and what files say together."""

from __future__ import annotations

import datetime
import json
import re

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.kinds import REFERENCE as KINDS
from ansible_collections.podwire.cni.plugins.plugin_utils._conf import fold, schema_files
from ansible_collections.podwire.cni.plugins.plugin_utils._conf.validate import Checked, TextSource

NETWORK = {"cniVersion": "1.0.0", "name": "apps", "plugins": [{"type": "bridge", "ipam": {"type": "dhcp"}}]}
MACVLAN = '{"cniVersion": "1.0.0", "type": "macvlan", "mode": "bridge", "master": "eth0"}'


def nad(config, before="", metadata="  name: storage\n"):
    """Return a manifest with *config*, the text of the value of spec.config with its indicator."""
    head = "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\n"
    return f"{before}{head}metadata:\n{metadata}spec:\n  config: {config}\n"


def codes(messages, *levels):
    return [code for *_place, level, code in messages if level in (levels or ("error", "warning"))]


# ---- grades


def of(plugin, **more):
    """Return a conflist with one plugin."""
    return {**NETWORK, "plugins": [{"type": "bridge", **plugin}], **more}


@pytest.mark.parametrize("resource", ["sriov", "intel_sriov", "a/b/c", "Intel.com/nic", "'7'"])
def test_a_resource_that_only_a_driver_for_dra_can_offer_is_an_info(lint_files, resource):
    metadata = f"  name: a\n  annotations:\n    k8s.v1.cni.cncf.io/resourceName: {resource}\n"
    found = lint_files({"a.yaml": nad(f"'{MACVLAN}'", metadata=metadata)})
    assert [entry[3:] for entry in found] == [("info", "nad_spec")]


@pytest.mark.parametrize("value", ["7", "true", "[a]"])
def test_an_annotation_that_the_api_refuses_is_an_error(lint_files, value):
    metadata = f"  name: a\n  annotations:\n    k8s.v1.cni.cncf.io/resourceName: {value}\n"
    assert lint_files({"a.yaml": nad(f"'{MACVLAN}'", metadata=metadata)})[0][3:] == ("error", "nad_spec")


def test_two_manifests_of_one_name_are_a_warning(lint_files):
    text = nad(f"'{MACVLAN}'")
    assert [entry[1:] for entry in lint_files({"a.yaml": f"{text}---\n{text}"})] == [(11, 9, "warning", "nad_twice")]


VENDORS = """
    cnv-bridge eve-bridge wg-cni ovn macvtap vxlan aws-eni sriov-cni vpc-macvlan tke-bridge terway galaxy-k8s-vlan
    bridge-vlan-aware ipvlan-l2 hostnic host-nic multus-proxy myhost-local flannel-v2 ptp2 tun veth rdma
    accelerated-bridge egress-v4-cni vpc-eni-v2
"""
TYPING_ERRORS = {
    "brigde": "bridge",
    "birdge": "bridge",
    "Bridge": "bridge",
    "macvlna": "macvlan",
    "mac-vlan": "macvlan",
    "hostdevice": "host-device",
    "host_device": "host-device",
    "portmapp": "portmap",
    "bandwith": "bandwidth",
    "bandwidhtt": "bandwidth",
    "flanel": "flannel",
    "multsu-shim": "multus-shim",
    "route-overide": "route-override",
}


@pytest.mark.parametrize("name", VENDORS.split())
def test_a_plugin_of_a_vendor_is_an_info(lint_files, name):
    found = lint_files({"a.conflist": of({"type": name})}, "--strict")
    assert [entry[3:] for entry in found] == [("info", "unknown_plugin")]
    assert "did you mean" not in lint_files.texts[0]
    assert lint_files.status == 0


@pytest.mark.parametrize("name", TYPING_ERRORS)
def test_a_typing_error_in_a_type_is_a_warning(lint_files, name):
    found = lint_files({"a.conflist": of({"type": name})})
    assert [entry[3:] for entry in found] == [("warning", "unknown_plugin")]
    assert f"did you mean {TYPING_ERRORS[name]}?" in lint_files.texts[0]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("isGatway", "isGateway"),
        ("is_gateway", "isGateway"),
        ("forceAdress", "forceAddress"),
        *[(key, "") for key in ("kubernetes", "gatewayIP", "ipMasquerade", "vlanId", "mtus")],
    ],
)
def test_a_key_is_meant_only_if_the_names_differ_by_a_typing_error(lint_files, key, meant):
    (entry,) = lint_files({"a.conflist": of({key: 5, "ipam": {"type": "dhcp"}})})
    assert entry[3:] == ("warning", "unknown_key")
    assert ("did you mean" in lint_files.texts[0]) == bool(meant)
    assert f"did you mean '{meant}'?" in lint_files.texts[0] or not meant


@pytest.mark.parametrize(("kind", "key"), [("portmap", "snat"), ("portmap", "masqAll"), ("tuning", "promisc")])
def test_an_option_of_a_plugin_is_no_capability(lint_files, kind, key):
    for name, expected in ((key, ["unknown_key"]), ("portMappings", []), ("mac", []), ("org.example.new", [])):
        plugin = {"type": kind, "capabilities": {"portMappings": True, name: True}}
        assert codes(lint_files({"a.conflist": {**NETWORK, "plugins": [*NETWORK["plugins"], plugin]}})) == expected
        assert not expected or f"{key!r} is an option of {kind} and no capability" in lint_files.texts[0]


@pytest.mark.parametrize("key", ["_x", "#x", "comment", "Note1", "Documentation", "description"])
def test_a_comment_is_no_unknown_key(lint_files, key):
    assert lint_files({"a.conflist": of({key: "text", "ipam": {"type": "dhcp", key: "text"}})}) == []


@pytest.mark.parametrize(("days", "level"), [(300, "warning"), (400, "info")])
@pytest.mark.parametrize("plugin", [{"type": "bond"}, {"type": "macvlan", "ipam": {"type": "whereabouts"}}])
def test_an_unknown_key_of_an_old_schema_is_an_info(lint_files, monkeypatch, days, level, plugin):
    class Then(datetime.date):
        @classmethod
        def today(cls):
            return datetime.date(2026, 11, 25) + datetime.timedelta(days=days)

    monkeypatch.setattr(fold, "date", Then)
    bond = {"mode": "active-backup", "miimon": "100", "links": [{"name": "a"}, {"name": "b"}]}
    plugin = {**bond, "new": 1, **plugin} if plugin["type"] == "bond" else {"type": "macvlan"}
    if plugin["type"] == "macvlan":
        plugin["ipam"] = {"type": "whereabouts", "range": "10.1.0.0/24", "new": 1}
    found = lint_files({"a.conflist": of(plugin)})
    assert [entry[3:] for entry in found] == [(level, "unknown_key")]


def test_an_unknown_key_of_a_reference_plugin_stays_a_warning(lint_files, monkeypatch):
    monkeypatch.setattr(fold, "_YEAR", datetime.timedelta(days=-1000))
    assert [entry[3] for entry in lint_files({"a.conflist": of({"new": 1})})] == ["warning"]


def test_the_schemas_of_others_say_when_they_were_made():
    for kind in ("plugin", "ipam"):
        for name, path in schema_files.types(kind).items():
            schema = schema_files.document(path)
            assert name in KINDS or name == "podwire-multinet" or datetime.date.fromisoformat(schema["x-read"]), path
            assert "x-read" not in schema or re.search(r"\b[0-9a-f]{7,}\b", schema["$comment"]), path


def test_keys_that_the_ipam_plugin_reads_from_the_whole_configuration_are_known(lint_files):
    keys = {"datastore_type": "kubernetes", "kubernetes": {"kubeconfig": "/etc/cni/net.d/calico-kubeconfig"}}
    plugin = {"type": "sriov", **keys, "ipam": {"type": "calico-ipam", "assign_ipv4": "true"}}
    assert lint_files({"a.conflist": of(plugin)}) == []
    plugin["ipam"]["type"] = "spiderpool"
    assert codes(lint_files({"a.conflist": of(plugin)})) == []
    plugin["ipam"]["type"] = "host-local"
    plugin["ipam"] = {"type": "host-local", "subnet": "10.1.0.0/24"}
    assert codes(lint_files({"a.conflist": of(plugin)})) == ["unknown_key", "unknown_key"]


def test_a_plugin_that_is_not_known_may_fill_in_a_range(lint_files):
    for kind, codes_ in (("terway", []), ("macvlan", ["schema"]), ("sriov", ["schema"])):
        assert codes(lint_files({"a.conflist": of({"type": kind, "ipam": {"type": "host-local"}})})) == codes_


# ---- files of one directory


SINGLE = {"cniVersion": "1.0.0", "name": "apps", "type": "loopback"}


@pytest.mark.parametrize(
    ("name", "level"),
    [("net.d/10-a.conf", "error"), ("net.d/a.json", "error"), ("files/a.conf", "warning"), ("files/a.json", None)],
)
def test_a_list_in_a_file_for_one_plugin(lint_files, name, level):
    assert [entry[3:] for entry in lint_files({name: NETWORK})] == ([(level, "list_in_conf")] if level else [])


def test_a_single_plugin_in_a_conflist_is_refused(lint_files):
    assert codes(lint_files({"net.d/a.conflist": SINGLE})) == ["no_plugins"]


@pytest.mark.parametrize(("folder", "level"), [("etc/cni/net.d", "warning"), ("examples", "info")])
@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        (("10-a.conflist", NETWORK), ("20-b.conflist", NETWORK), "duplicate_name"),
        (("10-a.conflist", NETWORK), ("20-b.conf", SINGLE), "conf_and_conflist"),
        (("100-a.conflist", {**NETWORK, "name": "b"}), ("20-b.conflist", NETWORK), "order_by_text"),
    ],
)
def test_two_files_of_a_directory(lint_files, folder, level, first, second, code):
    found = lint_files({f"{folder}/{name}": content for name, content in (first, second)})
    assert [entry[3:] for entry in found] == [(level, code)]
    assert lint_files({f"{index}/{name}": content for index, (name, content) in enumerate((first, second))}) == []


def test_templates_of_two_files_may_be_of_two_networks(lint_files):
    text = json.dumps({**NETWORK, "name": "{{ name }}"})
    assert codes(lint_files({"net.d/10-a.conflist": text, "net.d/20-b.conflist": text})) == []


@pytest.mark.parametrize("name", ["net.d/10-a", "net.d/10-a.conflst", "net.d/a.cnf"])
def test_a_name_that_no_runtime_reads(lint_files, name):
    assert [entry[3:] for entry in lint_files({name: NETWORK})] == [("warning", "unread_file")]
    assert lint_files({name.replace("net.d", "x"): NETWORK}) == []


# ---- Multus


CALICO = {"type": "calico", "ipam": {"type": "calico-ipam"}}
MULTUS = {"type": "multus", "kubeconfig": "/etc/cni/net.d/multus.d/multus.kubeconfig"}


@pytest.mark.parametrize(
    ("delegate", "expected"),
    [
        ({"name": "a", "type": "bridge", "ipam": {"type": "dhcp"}}, []),
        ({"type": "bridge", "ipam": {"type": "dhcp"}}, [("warning", "no_name", "/delegates/0")]),
        ({"plugins": [{"type": "bridge"}]}, [("error", "no_name", "/delegates/0")]),
        ({"name": "a b", "type": "bridge"}, [("error", "bad_name", "/delegates/0/name")]),
        (
            {"name": "a", "cniVersion": "1.0", "type": "bridge"},
            [("error", "unsupported_version", "/delegates/0/cniVersion")],
        ),
        ({"name": "a", "plugins": []}, [("error", "no_plugins", "/delegates/0/plugins")]),
        ({"name": "a", "type": "/opt/bridge"}, [("error", "bad_type", "/delegates/0/type")]),
        (
            {"name": "a", "plugins": [{"type": "tuning"}, {"type": "bridge"}]},
            [("error", "chain_order", "/delegates/0/plugins/0")],
        ),
        (
            {"name": "a", "type": "macvlan", "ipam": {"type": "static"}},
            [("warning", "static_no_address", "/delegates/0/ipam")],
        ),
        ({"name": "a", "type": "macvlan", "capabilities": {"ips": True}, "ipam": {"type": "static"}}, []),
    ],
)
@pytest.mark.parametrize("single", [True, False])
def test_delegates_are_judged_like_networks(lint_files, delegate, expected, single):
    plugin = {**MULTUS, "delegates": [delegate]}
    conf = {"cniVersion": "1.0.0", "name": "m", **({"plugins": [plugin]} if not single else plugin)}
    found = lint_files({"a.conf" if single else "a.conflist": conf})
    pointers = [text.partition(": ")[2].split(": ")[1] for text in lint_files.texts]
    prefix = "" if single else "/plugins/0"
    seen = [(*entry[3:], pointer) for entry, pointer in zip(found, pointers)]
    assert seen == [(level, code, prefix + pointer) for level, code, pointer in expected]
    assert all(entry[1] for entry in found)


def test_static_in_a_definition_needs_addresses_or_a_pod_that_asks_for_them(lint_files):
    static = '{"cniVersion": "1.0.0", "type": "macvlan", %s "ipam": {"type": "static"}}'
    found = lint_files({"a.yaml": nad("'{}'".format(static % ""))})
    # Multus passes them in CNI_ARGS, too.
    assert [entry[3:] for entry in found] == [("info", "static_no_address")]
    assert '"capabilities": {"ips": true}' in lint_files.texts[0]
    assert lint_files({"a.yaml": nad("'{}'".format(static % '"capabilities": {"ips": true},'))}) == []
    assert codes(lint_files({"a.conf": json.loads(static % '"name": "a",')})) == []


# ---- remedies and values


def static(**address):
    return of({"ipam": {"type": "static", "addresses": [address]}})


def local(**ipam):
    return of({"ipam": {"type": "host-local", **ipam}})


REMEDIES = [
    local(subnet="10.4.0.1"),
    local(subnet="10.4.0.1/24"),
    local(subnet="fd00::5"),
    local(subnet="10.4.0.0/24", gateway="10.4.0.1/24"),
    local(subnet="10.4.0.0/24", rangeStart="10.4.0.9/24"),
    local(subnet="10.4.0.0/24", routes=[{"dst": "10.9.0.1"}]),
    local(subnet="10.4.0.0/24", routes=[{"dst": "10.9.0.1/24"}]),
    local(subnet="10.4.0.0/24", routes=[{"dst": "0.0.0.0"}]),
    local(ranges=[[{"subnet": "10.4.0.7"}]]),
    static(address="10.4.0.7"),
    static(address="fd00::7"),
    static(address="10.4.0.7/24", gateway="10.4.0.1/24"),
    of({"mtu": "1500"}),
    of({"isGateway": "true", "ipam": {"type": "dhcp"}}),
    of({"isGateway": 1, "ipam": {"type": "dhcp"}}),
    of({"bridge": 7}),
    of({}, cniVersion="1.0"),
    of({}, cniVersion=1.0),
    of({}, cniVersion="0.3"),
    of({}, cniVersion="1.1"),
    of({"type": "/opt/cni/bin/bridge"}),
    of({"ipam": {"type": "whereabouts", "range": "10.4.0.1"}}),
    of({"type": "vlan", "master": "eth0", "vlanId": "5", "ipam": {"type": "dhcp"}}),
    of({}, disableCheck="yes"),
    local(subnet="10.4.0.0/24", gateway="10.4.0.0/24"),
    local(subnet="10.4.0.0/24", rangeStart="10.4.0.0/24"),
]
# The message tells members of the object.
MEMBERS = [
    local(),
    local(gateway="10.55.0.1"),
    local(subnet="10.4.0.1", gateway="10.4.0.0/24"),
    {"cniVersion": "1.0.0", "plugins": [{"type": "bridge"}]},
    {"cniVersion": "1.0.0", "name": "apps", "plugins": [{"mtu": 5}]},
]


def written(text):
    """Return the value that a message tells to write, or {None: members}; None if it tells no value."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"\bwrite(?:, for example,)? (.*)", text):
        rest, members = match[1], {}
        while rest.startswith('"'):
            key, end = decoder.raw_decode(rest)
            if rest[end : end + 2] != ": ":
                break
            members[key], length = decoder.raw_decode(rest[end + 2 :])
            rest = rest[end + 2 + length :].removeprefix(", ")
        if members:
            return {None: members}
        if rest[:1] in ('"', "[", "{"):
            return decoder.raw_decode(rest)[0]
        word = re.split(r"[\s,;]", rest)[0]
        if word in ("true", "false") or word.isdigit():
            return json.loads(word)
        # Other words say what to write, and not the value itself.
        if re.search(r"[\d/:]", word):
            return word
    return None


def applied(conf, line):
    """Return a network with what the message tells to write, None if it tells no value."""
    pointer, _colon, text = re.split(r": (?:error|warning|info): ", line, maxsplit=1)[1].partition(": ")
    value = written(text.rpartition(" [")[0] if pointer.startswith("/") else f"{pointer}: {text}")
    parts = [int(part) if part.isdigit() else part for part in pointer.split("/")[1:]] if pointer[:1] == "/" else []
    if value is None:
        return None
    changed = place = json.loads(json.dumps(conf))
    members = value.get(None) if isinstance(value, dict) else None
    for part in parts if members and parts[-1:] != [next(iter(members))] else parts[:-1]:
        place = place[part]
    if members:
        place.update(members)
    else:
        place[parts[-1]] = value
    return changed


@pytest.mark.parametrize("conf", [*REMEDIES, *MEMBERS], ids=json.dumps)
def test_what_a_message_tells_to_write_passes_our_own_rules(lint_files, conf):
    lint_files({"a.conflist": conf}, "--quiet")
    (line,) = lint_files.texts
    assert codes(lint_files({"b.conflist": applied(conf, line)})) == [], lint_files.texts


def examples():
    """Yield kind and type of a plugin, and a key that has an example."""
    for kind in ("plugin", "ipam"):
        for name, path in schema_files.types(kind).items():
            schema = schema_files.resolved(path)
            for key, inner in schema.get("properties", {}).items():
                if inner.get("examples"):
                    yield kind, name, key


@pytest.mark.parametrize(("kind", "name", "key"), list(examples()))
@pytest.mark.parametrize("wrong", [{}, [], 5, "", "no such value"], ids=json.dumps)
def test_each_example_of_a_schema_passes_our_own_rules_in_place_of_a_wrong_value(lint_files, kind, name, key, wrong):
    plugin = {"type": name, key: wrong}
    conf = of(plugin if kind == "plugin" else {"ipam": plugin})
    lint_files({"a.conflist": conf})
    place = f": /plugins/0/{key}: " if kind == "plugin" else f": /plugins/0/ipam/{key}: "
    for line in [line for line in lint_files.texts if place in line and " write" in line]:
        changed = applied(conf, line)
        assert changed is not None, line
        lint_files({"b.conflist": changed})
        assert [text for text in lint_files.texts if place in text and ": info: " not in text] == [], line


def whereabouts(**keys):
    return of({"ipam": {"type": "whereabouts", **keys}})


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        (whereabouts(range="10.4.0.1", gateway="10.4.0.0/24"), whereabouts(range="10.4.0.0/24", gateway="10.4.0.1")),
        (whereabouts(range="fd00::1", gateway="fd00::/64"), whereabouts(range="fd00::/64", gateway="fd00::1")),
        (static(address="10.4.0.1", gateway="10.4.0.9/24"), static(address="10.4.0.9/24", gateway="10.4.0.1")),
        # Only the prefix moves.
        (static(address="10.4.0.5", gateway="10.4.0.1/16"), static(address="10.4.0.5/16", gateway="10.4.0.1")),
        (static(address="10.4.0.5", gateway="10.4.255.254/16"), static(address="10.4.0.5/16", gateway="10.4.255.254")),
        (static(address="fd00::5", gateway="fd00::1/48"), static(address="fd00::5/48", gateway="fd00::1")),
    ],
)
def test_an_address_exchanged_with_the_gateway_is_one_finding(lint_files, conf, expected):
    assert codes(lint_files({"a.conflist": conf})) == ["subnet_exchanged"]
    assert applied(conf, lint_files.texts[0]) == expected
    assert codes(lint_files({"b.conflist": expected})) == []


@pytest.mark.parametrize("key", ["gateway", "rangeStart", "rangeEnd"])
def test_a_range_in_the_old_form_without_a_subnet_is_ignored_beside_ranges(lint_files, key):
    found = lint_files({"a.conflist": local(ranges=[[{"subnet": "10.4.0.0/16"}]], **{key: "10.4.0.9"})})
    assert [entry[3:] for entry in found] == [("warning", "no_effect")]
    assert f"/plugins/0/ipam/{key}: " in lint_files.texts[0]


@pytest.mark.parametrize("key", ["disableCheck", "disableGC", "cniVersions", "loadOnlyInlinedPlugins"])
def test_a_key_of_the_list_in_a_plugin_is_to_move_there(lint_files, key):
    single = {"cniVersion": "1.0.0", "name": "a", "type": "loopback", key: True}
    for name, content in (("a.conflist", of({key: True})), ("a.conf", single)):
        assert codes(lint_files({name: content})) == ["unknown_key"]
        assert "write it beside 'plugins', in a list" in lint_files.texts[0]


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize(("subnet", "gateway"), [("10.4.0.1", "10.4.0.0/24"), ("fd00::1", "fd00::/64")])
def test_a_subnet_exchanged_with_the_gateway_is_one_finding(lint_files, ranges, subnet, gateway):
    entry = {"subnet": subnet, "gateway": gateway}
    found = lint_files({"a.conflist": local(ranges=[[entry]]) if ranges else local(**entry)})
    assert [place[3:] for place in found] == [("error", "subnet_exchanged")]
    assert f'"subnet": "{gateway}", "gateway": "{subnet}"' in lint_files.texts[0]


def test_a_value_is_reported_once():
    for name, value in (("mtu", "{{ mtu }}"), ("mtu", "__MTU__"), ("isGateway", "${GATEWAY}")):
        problems = Checked(TextSource(json.dumps(of({name: value}))), "", None, ("syntax", "schema")).problems
        assert [(entry.level, entry.code) for entry in problems] == [("error", "template")]
    problems = Checked(TextSource(json.dumps(of({}, cniVersion="{{ v }}"))), "", None, ("syntax", "schema")).problems
    assert [(entry.level, entry.code) for entry in problems] == [("error", "template")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.conflist", "cniVersion: 1.0.0\nname: a\n"),
        ("a.conflist", "---\n- a\n"),
        ("a.conflist", {"cniVersion": "1.0.0", "plugins": [{"type": "bridge"}]}),
        ("a.conflist", of({"type": "/opt/cni/bin/bridge"})),
        ("net.d/99-loopback.conf", {"cniVersion": "0.3.1", "type": "loopback"}),
        ("a.conf", {"cniVersion": "0.3.1", "type": "bridge"}),
    ],
)
def test_messages_speak_of_the_file_and_not_of_options(lint_files, name, content):
    assert len(lint_files({name: content})) == 1
    assert not re.search(r"'(src|content|conflist|name|networks)'|bin_dirs|the task|ansible", lint_files.texts[0])


@pytest.mark.parametrize(
    ("delegates", "expected"),
    [
        ([], "1.0.0"),
        ([{"cniVersion": "0.3.1", "name": "b", "type": "ptp", "ipam": {"type": "dhcp"}}], "0.3.1"),
        ([{"cniVersion": "9.0.0", "name": "b", "type": "ptp", "ipam": {"type": "dhcp"}}], "1.0.0"),
        ([{"cniVersion": version, "name": version, "type": "cilium-cni"} for version in ("0.4.0", "0.3.1")], "0.4.0"),
        # It has that version already.
        ([{"cniVersion": "0.1.0", "name": "b", "type": "ptp", "ipam": {"type": "dhcp"}}], None),
    ],
)
def test_multus_without_a_version_is_to_have_that_of_its_networks(lint_files, delegates, expected):
    plugin = {"type": "multus", "kubeconfig": "/etc/cni/net.d/multus.kubeconfig", "delegates": delegates}
    lint_files({"a.conflist": {"name": "a", "plugins": [plugin]}})
    told = [text for text in lint_files.texts if "[no_version]" in text]
    assert len(told) == bool(expected) and all(f'write "cniVersion": "{expected}"' in line for line in told)


def test_a_network_in_an_object_without_a_name_is_checked(lint_files):
    head = "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nname: a\nspec:\n  config: "
    text = head + """'{"cniVersion": "0.3.1", "type": "macvlan", "master": "eth0", "mdoe": "l2"}'\n"""
    found = lint_files({"a.yaml": text})
    assert [(line, code) for _file, line, _column, _level, code in found] == [
        (3, "nad_spec"),
        (1, "nad_name"),
        (5, "unknown_key"),
    ]
    assert "no key 'name' at its top" in lint_files.texts[0]


# ---- secrets


@pytest.mark.parametrize(
    "plugin",
    [
        {**CALICO, "policy": {"type": "k8s", "k8s_auth_token": "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJr.c2ln"}},
        {"type": "bridge", "args": {"password": "hunter22"}},
        {"type": "bridge", "args": {"etcd": "https://root:hunter22@10.1.0.1:2379"}},
        {"type": "bridge", "args": {"pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"}},
    ],
)
def test_a_secret_in_a_file_is_a_warning(lint_files, plugin):
    found = [entry for entry in lint_files({"a.conflist": of(plugin)}) if entry[3] != "info"]
    assert [entry[3:] for entry in found] == [("warning", "secret_in_file")]
    assert "hunter22" not in lint_files.texts[0]
    text = json.dumps(of(plugin)).replace("'", "")
    assert codes(lint_files({"a.yaml": nad(f"'{text}'")})) == ["secret_in_file"]


@pytest.mark.parametrize("value", ["__SERVICEACCOUNT_TOKEN__", "{{ vault_token }}", "${TOKEN}", "<token>", ""])
def test_a_place_for_a_secret_is_none(lint_files, value):
    plugin = {**CALICO, "policy": {"type": "k8s", "k8s_auth_token": value}}
    more = {"etcd_key_file": "/etc/ssl/key.pem", "kubernetes": {"kubeconfig": "/etc/cni/net.d/calico-kubeconfig"}}
    assert codes(lint_files({"a.conflist": of({**plugin, **more})})) == []
