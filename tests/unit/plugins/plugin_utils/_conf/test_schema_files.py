# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

"""The schema files themselves, and their use without us: an editor knows JSON Schema and no more."""

from __future__ import annotations

import json
import os
import pathlib

import jsonschema
import pytest
import referencing
import referencing.jsonschema

from ansible_collections.podwire.cni.plugins.plugin_utils._conf import schema, schema_files
from ansible_collections.podwire.cni.plugins.plugin_utils._conf.formats import FORMATS
from ansible_collections.podwire.cni.plugins.plugin_utils._conf.validate import Checked, DataSource

PATHS = sorted(
    os.path.relpath(os.path.join(folder, name), schema_files.FOLDER)
    for folder, _folders, files in os.walk(schema_files.FOLDER)
    for name in files
)
OURS = {"x-level", "x-exact", "x-partial", "x-words", "x-without-type", "x-since", "x-min-version"}
OURS |= {"x-read", "x-outer"}
EDITORS = {"errorMessage", "patternErrorMessage"}
REFERENCE = {
    "plugin": "bridge ptp macvlan ipvlan vlan host-device loopback dummy tap portmap bandwidth firewall tuning sbr vrf",
    "ipam": "host-local static dhcp",
}


def parts(value):
    """Yield every schema inside of *value*, a schema."""
    if not isinstance(value, dict):
        return
    yield value
    for key, inner in value.items():
        if key in ("properties", "patternProperties", "$defs"):
            for member in inner.values():
                yield from parts(member)
        elif key in ("allOf", "anyOf"):
            for member in inner:
                yield from parts(member)
        elif key in ("items", "additionalProperties", "propertyNames", "not", "if", "then", "else"):
            yield from parts(inner)


def document(path):
    return json.loads(pathlib.Path(schema_files.FOLDER, path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", PATHS)
def test_every_file_is_a_valid_schema_with_a_title_and_known_words_only(path):
    data = document(path)
    jsonschema.Draft202012Validator.check_schema(data)
    assert data["title"]
    assert data["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]
    # Identifiers would keep other validators from finding the files that are referred to.
    assert "$id" not in data
    words = set(jsonschema.Draft202012Validator.VALIDATORS) | OURS | EDITORS
    words |= {"$schema", "$comment", "$defs", "title", "description", "examples", "deprecated", "if", "then", "else"}
    for part in parts(data):
        assert set(part) <= words
        assert part.get("format", "ip") in FORMATS


def keys(*rules):
    """Yield every key that an object may have, and those inside, each with whether something explains it."""
    found = [part for rule in rules for part in schema_files._parts(rule)]
    members = {}
    for part in found:
        for key, rule in part.get("properties", {}).items():
            members.setdefault(key, []).append(rule)
    for key, inner in members.items():
        yield key, any("description" in part for rule in inner for part in schema_files._parts(rule))
        yield from keys(*inner)
    for part in found:
        yield from keys(part.get("items"), part.get("additionalProperties"))


@pytest.mark.parametrize("path", [path for path in PATHS if "/" in path or path in ("conf.json", "conflist.json")])
def test_every_key_is_explained_and_every_example_is_valid(path):
    schema_of_file = schema_files.resolved(path)
    assert [key for key, explained in keys(schema_of_file) if not explained] == []
    for part in parts(schema_of_file):
        for example in part.get("examples", []):
            assert not list(jsonschema.Draft202012Validator(part).iter_errors(example)), (part, example)


def test_no_module_has_the_name_of_the_folder():
    # Ansible's importer would find the folder, and take it for the module.
    assert not os.path.exists(schema_files.FOLDER + ".py")


def test_every_plugin_has_a_schema_that_names_its_source():
    for kind, names in REFERENCE.items():
        for name in names.split():
            data = document(schema_files.types(kind)[name])
            assert "containernetworking/plugins" in data["$comment"]
            assert data["unevaluatedProperties"] is False
    for path in PATHS:
        if "/" in path:
            assert document(path)["$comment"].startswith("Source: ")


def test_every_file_is_chosen_by_a_type_and_editors_offer_all_types():
    for kind, folder in (("plugin", "plugins"), ("ipam", "ipam")):
        chosen = schema_files.types(kind)
        here = {path for path in PATHS if path.startswith(folder + "/")}
        # What cilium-cni takes where no type is written has no type.
        assert here - set(chosen.values()) <= {"ipam/cilium-cni.json"}
        offered = document(kind + ".json")["allOf"][-1]["if"]["properties"]["type"]["enum"]
        assert sorted(offered) == sorted(chosen)
        assert len(chosen) == len(document(kind + ".json")["allOf"][:-1]) + (kind == "plugin")


def test_the_list_of_common_keys_is_the_same_twice():
    defs = document("common.json")["$defs"]
    assert list(defs["keys"]["properties"]) == list(defs["plugin"]["properties"])


def test_references_have_no_neighbours_that_editors_would_lose():
    # VS Code puts what is referred to over what stands beside the reference.
    for path in PATHS:
        for part in parts(document(path)):
            if "$ref" in part:
                file, _hash, pointer = part["$ref"].partition("#")
                file = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
                target = document(file)
                for step in pointer.split("/")[1:]:
                    target = target[step]
                lost = {"description", "examples"} if pointer == "" else set()
                assert set(part) & set(target) <= {"$comment", "examples"} | lost, (path, part)


def test_a_validator_is_made_once_for_all_networks():
    schema._validator.cache_clear()
    for number in range(20):
        data = {"cniVersion": "1.0.0", "name": "n%d" % number, "plugins": [{"type": "bridge"}, {"type": "portmap"}]}
        assert Checked(DataSource(data), None, None, ("schema",)).problems == []
    assert schema._validator.cache_info().misses == 3


# ---- without us


def plain(entry):
    """Return a validator for *entry* that knows nothing but the files."""

    def retrieve(uri):
        path = pathlib.Path(uri.removeprefix("file://"))
        return referencing.Resource.from_contents(json.loads(path.read_text(encoding="utf-8")))

    registry = referencing.Registry(retrieve=retrieve)
    uri = "file://" + os.path.join(schema_files.FOLDER, entry)
    resource = referencing.Resource(document(entry), referencing.jsonschema.DRAFT202012)
    return jsonschema.Draft202012Validator({"$ref": uri}, registry=registry.with_resource(uri, resource))


LIST = plain("conflist.json")
SINGLE = plain("conf.json")
LOCAL = {"type": "host-local", "subnet": "10.1.0.0/24"}


@pytest.mark.parametrize(
    "plugin",
    [
        {"type": "bridge", "mtu": 1500, "ipam": {**LOCAL, "routes": [{"dst": "::/0"}]}, "_comment": "x"},
        {"type": "ptp", "ipam": {"type": "static", "addresses": [{"address": "10.1.0.2/24"}]}},
        {"type": "bandwidth", "ingressRate": 1, "ingressBurst": 1, "capabilities": {"bandwidth": True}},
        {"type": "flannel", "delegate": {"isDefaultGateway": True, "hairpinMode": True}},
        {"type": "flannel", "delegate": {"type": "macvlan", "mode": "bridge"}},
        {"type": "multus", "delegates": [{"type": "bridge"}, {"name": "a", "plugins": [{"type": "tuning"}]}]},
        {"type": "calico", "acme": 1, "ipam": {"type": "calico-ipam", "assign_ipv4": "true"}},
        {"type": "cilium-cni", "ipam": {"min-allocate": 1}},
        {"type": "acme", "own": {"a": [1]}, "ipam": {"type": "acme-ipam", "own": 1}},
    ],
    ids=lambda plugin: plugin["type"],
)
def test_editors_accept_what_we_accept(plugin):
    data = {"$schema": "x", "cniVersion": "1.0.0", "name": "a", "plugins": [plugin]}
    assert [error.message for error in LIST.iter_errors(data)] == []
    assert [error.message for error in SINGLE.iter_errors({"cniVersion": "1.0.0", "name": "a", **plugin})] == []


@pytest.mark.parametrize(
    ("plugin", "path"),
    [
        ({}, ""),
        ({"type": "bridge", "isGatway": True}, ""),
        ({"type": "bridge", "mtu": "1500"}, "mtu"),
        ({"type": "bridge", "hairpinMode": True, "promiscMode": True}, ""),
        ({"type": "bridge", "dns": {"nameserver": []}}, "dns"),
        ({"type": "bridge", "ipam": {**LOCAL, "rangestart": "10.1.0.5"}}, "ipam"),
        ({"type": "bridge", "ipam": {"type": "host-local", "subnet": "10.1.0.0"}}, "ipam.subnet"),
        ({"type": "ptp"}, ""),
        ({"type": "macvlan", "master": "lo"}, "master"),
        ({"type": "bandwidth", "ingressRate": 1}, ""),
        ({"type": "vrf"}, ""),
        ({"type": "flannel", "delegate": {"mtu": "x"}}, "delegate.mtu"),
        ({"type": "multus", "delegates": [{"plugins": [{"type": "vrf"}]}]}, "delegates.0.plugins.0"),
        ({"type": "calico", "mtu": "x", "ipam": LOCAL}, "mtu"),
        ({"type": "acme", "capabilities": []}, "capabilities"),
    ],
    ids=range(15),
)
def test_editors_mark_the_same_place_and_nothing_else(plugin, path):
    errors = list(LIST.iter_errors({"cniVersion": "1.0.0", "name": "a", "plugins": [plugin]}))
    assert [".".join(str(part) for part in list(error.absolute_path)[2:]) for error in errors] == [path]


@pytest.mark.parametrize("missing", ["cniVersion", "name", "plugins"])
def test_editors_mark_a_list_that_is_not_complete(missing):
    data = {"cniVersion": "1.0.0", "name": "a", "plugins": [{"type": "loopback"}]}
    assert LIST.is_valid(data)
    assert not LIST.is_valid({key: value for key, value in data.items() if key != missing})
    assert not LIST.is_valid({**data, "cniVersion": "1.0"})
    assert not LIST.is_valid({**data, "name": "bridge@1"})
    assert not LIST.is_valid({**data, "disableCheck": "yes"})
