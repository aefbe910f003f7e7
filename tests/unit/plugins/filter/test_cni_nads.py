# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.podwire.cni.plugins.filter import networks as module

cni_nads = module.FilterModule().filters()["cni_nads"]

NETWORK = {"cniVersion": "1.0.0", "name": "storage", "plugins": [{"type": "macvlan", "master": "eth1"}]}
TEXT = """\
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: storage
  namespace: default
spec:
  config: |
    {
      "cniVersion": "1.0.0",
      "plugins": [
        {"type": "bridge", "bridge": "br1"},
        {"type": "tuning",
           "mtu": "1500"}
      ]
    }
"""


def manifest(config=None, **metadata):
    text = config if isinstance(config, str) else json.dumps(config or NETWORK)
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": "storage", **metadata},
        "spec": {"config": text},
    }


def problems_of(nads, **options):
    return cni_nads(nads, problems=True, **options)


def only(nads, **options):
    (entry,) = problems_of(nads, **options)
    return entry


def test_a_good_manifest_comes_back_as_it_was():
    assert cni_nads(manifest()) == [manifest()]
    assert cni_nads([manifest(), manifest(namespace="x")]) == [manifest(), manifest(namespace="x")]
    assert problems_of(manifest()) == []


def test_a_problem_in_a_block_has_the_line_of_the_file():
    entry = only(TEXT, file="nads.yml")
    assert (entry["file"], entry["pointer"]) == ("nads.yml", "/spec/config/plugins/1/mtu")
    assert (entry["line"], entry["column"]) == (13, 19)
    assert TEXT.split("\n")[12][18:] == '"1500"}'
    text = r"nads\.yml, line 13, column 19, /spec/config/plugins/1/mtu: tuning: mtu"
    with pytest.raises(AnsibleFilterError, match=text):
        cni_nads(TEXT, file="nads.yml")


LINES = """{"cniVersion": "1.0.0",
     "name": "a",

     "type": "bridge", "mtu": "x"}"""


@pytest.mark.parametrize("lines", [" ".join(LINES.split()), LINES, LINES.replace(", ", ",\n      ")])
@pytest.mark.parametrize("style", ["'", '"', '"\\', "|", "|-", "|2", ">", ">-", ">+ # folded"])
def test_a_problem_in_a_string_of_any_form_has_its_place_in_the_file(style, lines):
    config = {
        "'": f"'{lines}'",
        '"': '"' + lines.replace('"', '\\"') + '"',
        '"\\': '"' + lines.replace('"', "\\x22").replace("\n", "\\n\\\n   \\ ") + '"',
    }.get(style, f"{style}\n     {lines}")
    text = TEXT[: TEXT.index("  config")] + f"  config: {config}\n"
    entry = only(text, file="nads.yml")
    assert entry["file"] == "nads.yml"
    place = text.split("\n")[entry["line"] - 1][entry["column"] - 1 :]
    assert place.startswith(('"x"', '\\"x', "\\x22x"))


def test_json_that_is_broken_has_its_place():
    entry = only(TEXT.replace('"1.0.0",', '"1.0.0"'), file="nads.yml")
    assert (entry["level"], entry["pointer"], entry["line"]) == ("error", "/spec/config", 10)


def test_a_mapping_has_the_place_in_the_string():
    entry = only(manifest(json.dumps({**NETWORK, "plugins": [{"type": "bridge", "mtu": "x"}]}, indent=2)))
    assert entry["file"] == "NetworkAttachmentDefinition storage, spec.config"
    assert (entry["pointer"], entry["line"]) == ("/spec/config/plugins/0/mtu", 7)


def test_several_documents_and_lists():
    text = TEXT + "---\n" + json.dumps({"kind": "List", "items": [manifest(), {**manifest(), "kind": "Pod"}]})
    found = [(entry["code"], entry["pointer"]) for entry in problems_of(text)]
    assert found == [
        ("schema", "/spec/config/plugins/1/mtu"),
        ("nad_kind", "/items/1/kind"),
        ("nad_twice", "/items/1/metadata/name"),
    ]
    assert len(cni_nads("---\n---\n" + yaml.safe_dump(manifest()))) == 1
    assert cni_nads(json.dumps(manifest(), indent="\t")) == [manifest()]


@pytest.mark.parametrize(
    ("change", "code", "level", "pointer"),
    [
        ({"apiVersion": "k8s.cni.cncf.io/v2"}, "nad_kind", "error", "/apiVersion"),
        ({"metadata": {}}, "nad_name", "error", "/metadata"),
        ({"metadata": {"name": "Storage_1"}}, "nad_name", "error", "/metadata/name"),
        ({"metadata": {"name": "a." * 130 + "a"}}, "nad_name", "error", "/metadata/name"),
        ({"metadata": {"name": "a.b"}}, "nad_name", "warning", "/metadata/name"),
        ({"metadata": {"name": "a", "namespace": "A"}}, "nad_name", "error", "/metadata/namespace"),
        ({"spec": []}, "nad_spec", "error", "/spec"),
        ({"spec": {"config": NETWORK}}, "nad_spec", "error", "/spec/config"),
        ({"spec": {"config": 5}}, "nad_spec", "error", "/spec/config"),
        ({"spec": {"config": json.dumps(NETWORK), "conf": 1}}, "nad_spec", "warning", "/spec/conf"),
        ({"spec": {}}, "nad_file", "info", "/spec"),
        ({"spec": {"config": ""}}, "nad_file", "info", "/spec"),
        ({"spec": {"config": "null"}}, "not_object", "error", "/spec/config"),
        (
            {"metadata": {"name": "a", "annotations": {"k8s.v1.cni.cncf.io/resourceName": "nic"}}},
            "nad_spec",
            "info",
            "/metadata/annotations/k8s.v1.cni.cncf.io~1resourceName",
        ),
    ],
)
def test_what_is_wrong_with_a_manifest(change, code, level, pointer):
    entry = next(entry for entry in problems_of({**manifest(), **change}) if entry["code"] == code)
    assert (entry["level"], entry["pointer"]) == (level, pointer)


@pytest.mark.parametrize("name", [None, ""])
def test_a_network_without_a_name_gets_the_manifests(name):
    network = {key: value for key, value in NETWORK.items() if key != "name"}
    assert problems_of(manifest({**network, "name": ""} if name == "" else network)) == []


def test_what_multus_refuses_and_libcni_does_not():
    entry = only(manifest({**NETWORK, "disableCheck": "true"}), validate=["syntax"])
    assert (entry["code"], entry["pointer"]) == ("refused_by_multus", "/spec/config/disableCheck")


def test_manifests_are_made_from_networks():
    networks = [
        {"name": "storage", "conflist": {key: NETWORK[key] for key in ("cniVersion", "plugins")}, "priority": 20},
        {
            "name": "backup",
            "content": '{"cniVersion": "1.0.0", "type": "macvlan", "mtu": 1500.0}',
            "file": "x.conflist",
        },
        {"name": "old", "state": "absent"},
    ]
    made = cni_nads(networks, "pods")
    assert [one["metadata"] for one in made] == [
        {"name": "storage", "namespace": "pods"},
        {"name": "backup", "namespace": "pods"},
    ]
    assert json.loads(made[0]["spec"]["config"]) == NETWORK
    assert '"mtu": 1500.0' in made[1]["spec"]["config"]
    assert cni_nads(made) == made
    assert "namespace" not in cni_nads(networks)[0]["metadata"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"name": "storage", "src": "x.conflist"}, "reads no files; write content"),
        ({"name": "storage"}, "neither a manifest nor a network"),
        ({"name": "storage", "conflist": NETWORK, "content": "{}"}, "exactly one"),
        ({"name": "Storage", "conflist": {**NETWORK, "name": "Storage"}}, "choose another name"),
        ({"name": "other", "conflist": NETWORK}, "make them equal"),
        ({"name": "storage", "conflist": NETWORK, "stat": 1}, "did you mean"),
        (5, "a manifest is a mapping"),
    ],
)
def test_networks_that_are_none(entry, words):
    with pytest.raises(AnsibleFilterError, match=words):
        cni_nads([entry])


def test_text_that_is_not_yaml():
    entry = only("a: b: c\n", file="nads.yml")
    assert (entry["code"], entry["file"], entry["line"]) == ("yaml_invalid", "nads.yml", 1)


def test_strict_turns_warnings_into_errors():
    with pytest.raises(AnsibleFilterError, match="JSON form"):
        cni_nads(manifest(name="a.b"), strict=True)
    assert cni_nads(manifest(name="a.b"))


@pytest.mark.parametrize(
    ("value", "options"),
    [(5, {}), (manifest(), {"validate": ["plugins"]}), (manifest(), {"strict": "x"}), (manifest(), {"namespace": 5})],
)
def test_misuse_is_an_error_of_the_filter(value, options):
    with pytest.raises(AnsibleFilterError, match="cni_nads"):
        cni_nads(value, **options)
