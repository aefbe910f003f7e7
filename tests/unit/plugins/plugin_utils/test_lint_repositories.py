# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The linter on what repositories contain: templates, manifests of all kinds, files for other programs."""

from __future__ import annotations

import datetime
import json
import re

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.kinds import REFERENCE as KINDS
from ansible_collections.podwire.cni.plugins.plugin_utils import lint
from ansible_collections.podwire.cni.plugins.plugin_utils._conf import fold, schema_files

LINE = re.compile(r"(?P<file>.*?)(?::(?P<line>\d+):(?P<column>\d+))?: (?P<level>\w+): (?P<text>.*) \[(?P<code>\w+)\]")
NETWORK = {"cniVersion": "1.0.0", "name": "apps", "plugins": [{"type": "bridge", "ipam": {"type": "dhcp"}}]}


@pytest.fixture
def lint_files(tmp_path, capsys, monkeypatch):
    """Return a function that writes and lints files, and returns (file, line, column, level, code) of each message."""
    monkeypatch.chdir(tmp_path)

    def run(files, *options):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content, indent=1) if isinstance(content, dict) else content)
        run.status = lint.main([*options, *files])
        out = capsys.readouterr().out
        run.texts = out.splitlines()
        found = [LINE.fullmatch(line) for line in run.texts]
        return [
            (match["file"], int(match["line"] or 0), int(match["column"] or 0), match["level"], match["code"])
            for match in found
        ]

    return run


def nad(config, before="", metadata="  name: storage\n"):
    """Return a manifest with *config*, the text of the value of spec.config with its indicator."""
    head = "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\n"
    return f"{before}{head}metadata:\n{metadata}spec:\n  config: {config}\n"


def codes(messages, *levels):
    return [code for *_place, level, code in messages if level in (levels or ("error", "warning"))]


# ---- templates

MACVLAN = '{"cniVersion": "1.0.0", "type": "macvlan", "mode": "bridge", "master": "eth0"}'
HELM = """\
{{- range $index, $nic := .Values.nics }}
{{- if $nic.enabled }}
---
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: {{ include "chart.name" $ }}-{{ $index }}
  namespace: {{ $.Release.Namespace | quote }}
  {{- with $nic.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  labels:
    {{- include "chart.labels" $ | nindent 4 }}
spec:
  config: |-
    {
      "cniVersion": "0.3.1",
      "type": "macvlan",
      "master": {{ $nic.master | quote }},
      "mode": "BROKEN",
      {{- if $nic.mtu }}
      "mtu": {{ $nic.mtu }},
      {{- end }}
{{- if $nic.static }}
      "ipam": {"type": "static"}
{{- else }}
      "ipam": {{ toJson $nic.ipam }}
{{- end }}
    }
{{- end }}
{{- end }}
"""
TEMPLATED = {
    "helm around and inside": HELM.replace("BROKEN", "bridge"),
    "a whole config": nad("'{{ .Config }}'", metadata="  name: {{.Name}}\n"),
    "a config without quotes": nad('{{- include "chart.config" . }}'),
    "a config on the next line": nad("|\n    {{ toJson .Values.config | indent 4 }}"),
    "elements of a list": nad(
        '|-\n    {"cniVersion": "0.3.1", "plugins": [\n      {{- .x | toPrettyJson | nindent 8 }}\n    ]}'
    ),
    "members of an object": nad(
        """'{
  "cniVersion":"0.3.1", "name":"{{.Name}}", "type":"{{.Type}}",
{{- if eq .Type "sriov" -}}
  "vlan":{{.Vlan}},
{{- end -}}
  {{.Ipam}}
}'"""
    ),
    "spec twice": nad(f"'{MACVLAN}'", "{{- if .a }}\n").replace(
        "spec:", "{{- if .b }}\nspec:\n  config: '{{ .c }}'\n{{- else }}\nspec:"
    )
    + "{{- end }}\n{{- end }}\n",
    "envsubst": nad(
        "'{}'".format(MACVLAN.replace("eth0", "$NIC")), metadata="  name: $NAD_NAME\n  namespace: ${NS:-a}\n"
    ),
    "numbers of a shell": nad("'{}'".format(MACVLAN.replace('"eth0"', '"eth0", "mtu": ${MTU}'))),
    "more elements": nad(
        '\'{"cniVersion": "1.0.0", "type": "macvlan", "ipam": {"type": "whereabouts", '
        '"ipRanges": [{"range": "10.1.0.0/25"}${MORE}]}}\''
    ),
    "kustomize": nad("'{}'".format(MACVLAN.replace("eth0", "$(NIC)"))),
    "square brackets": nad("'{}'".format(MACVLAN.replace('"eth0"', '"[[ .nic ]]", "mtu": [[ .mtu ]]'))),
    "a word in brackets": nad("'{}'".format(MACVLAN.replace("eth0", "<the name of your card>"))),
    "Jinja": nad(
        "'{}'".format(MACVLAN.replace('"eth0"', '"{{ nic }}"{% if mtu %}, "mtu": {{ mtu }}{% endif %}')),
        "{% for nic in nics %}\n",
    )
    + "{% endfor %}\n",
    "a patch that another program fills in": nad("'{}'".format(MACVLAN.replace("eth0", "__NIC__"))),
    "a config map": """\
kind: ConfigMap
apiVersion: v1
metadata: {name: calico-config, namespace: {{ .Release.Namespace }}}
data:
{{- if .Values.typha }}
  typha_service_name: "calico-typha"
{{- end }}
  cni_network_config: |-
    {
      "name": "k8s-pod-network", "cniVersion": "0.3.1",
      "plugins": [
        {"type": "calico", "nodename": "__KUBERNETES_NODE_NAME__", "mtu": __CNI_MTU__,
         "ipam": {
            "type": "calico-ipam",
            {{ if .v6 }}"assign_ipv6": "true",{{ end }}
            "assign_ipv4": "{{ .v4 }}"
         },
         "kubernetes": {"kubeconfig": "__KUBECONFIG_FILEPATH__"}},
        {"type": "portmap", "snat": true, "capabilities": {"portMappings": true}}
      ]
    }
""",
}


@pytest.mark.parametrize("name", TEMPLATED)
def test_a_template_in_yaml_is_no_error(lint_files, name):
    found = lint_files({"chart.yaml": TEMPLATED[name]})
    assert codes(found) == []
    assert lint_files.status == 0


@pytest.mark.parametrize("name", TEMPLATED)
def test_what_is_certain_in_a_template_is_judged(lint_files, name):
    """A sound document stands before each of them, and one with an error after it."""
    wrong = nad("'{}'".format(MACVLAN.replace("bridge", "brigde")), "---\n", "  name: other\n")
    right = nad(f"'{MACVLAN}'", metadata="  name: first\n") + "---\n"
    text = right + TEMPLATED[name] + wrong
    found = lint_files({"chart.yaml": text})
    assert codes(found) == ["schema"]
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "brigde" in line)
    assert [place[1] for place in found if place[3] == "error"] == [line]


def test_a_value_beside_templates_is_judged_at_its_place(lint_files):
    found = lint_files({"chart.yaml": HELM})
    assert [entry for entry in found if entry[3] == "error"] == [("chart.yaml", 21, 15, "error", "schema")]
    assert codes(found, "info") == ["template"]


CONFLIST = """\
{
  "cniVersion": "0.3.1",
  "name": "{{ cni_name | default('apps') }}",
  "plugins": [
{% if cni_bridge %}
    {"type": "bridge", "mtu": {{ cni_mtu }}, "isGateway": {{ cni_gateway | bool | lower }}, "hairpinMode": MODE,
{% else %}
    {"type": "ptp",
{% endif %}
     "ipam": {"type": "host-local",
              "ranges": [[{% for r in rs %}{{ r | to_json }}{% if not loop.last %},{% endif %}{% endfor %}]]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
"""


@pytest.mark.parametrize("name", ["10-apps.conflist", "10-apps.conflist.j2", "net.d/10-apps.conflist.tmpl"])
def test_a_template_of_a_conflist_is_no_error_and_its_certain_values_are_judged(lint_files, name):
    assert codes(lint_files({name: CONFLIST.replace("MODE", "true")})) == []
    broken = CONFLIST.replace('{"type": "ptp",\n', "").replace("{% else %}\n", "")
    assert codes(lint_files({name: broken.replace("MODE", '"yes"')})) == ["schema"]


@pytest.mark.parametrize(
    "text", ["{{ network | to_nice_json }}\n", "{% raw %}\n{{{\n{% endraw %}", '{"cniVersion": "1.0.0", {{ x }} {{ y']
)
def test_what_nobody_can_read_before_it_is_rendered_is_an_info(lint_files, text):
    assert [entry[3:] for entry in lint_files({"a.conflist": text})] == [("info", "template")]


def test_yaml_that_is_no_template_is_still_an_error(lint_files):
    assert codes(lint_files({"a.yaml": nad("{")})) == ["yaml_invalid"]


@pytest.mark.parametrize("text", ['["a", "b"]', "[[1, 2]]", '[["x"]]', '[[{"subnet": "10.1.0.0/24"}]]', '"a{b}"'])
def test_json_that_only_looks_like_a_template_is_judged(lint_files, text):
    found = lint_files({"a.conflist": {**NETWORK, "plugins": [{"type": "bridge", "mtu": json.loads(text)}]}})
    assert codes(found) == ["schema"]
    assert codes(found, "info") == []


# ---- grades


def of(plugin, **more):
    """Return a conflist with one plugin."""
    return {**NETWORK, "plugins": [{"type": "bridge", **plugin}], **more}


@pytest.mark.parametrize("resource", ["sriov", "intel_sriov", "a/b/c", "Intel.com/nic", "'7'"])
def test_a_resource_that_is_only_looked_up_and_missed_is_a_warning(lint_files, resource):
    metadata = f"  name: a\n  annotations:\n    k8s.v1.cni.cncf.io/resourceName: {resource}\n"
    found = lint_files({"a.yaml": nad(f"'{MACVLAN}'", metadata=metadata)})
    assert [entry[3:] for entry in found] == [("warning", "nad_spec")]


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
    accelerated-bridge
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
            assert "x-read" not in schema or re.search(r"\bat [0-9a-f]{7}|main branch", schema["$comment"]), path


def test_keys_that_the_ipam_plugin_reads_from_the_whole_configuration_are_known(lint_files):
    keys = {"datastore_type": "kubernetes", "kubernetes": {"kubeconfig": "/etc/cni/net.d/calico-kubeconfig"}}
    plugin = {"type": "sriov", **keys, "ipam": {"type": "calico-ipam", "assign_ipv4": "true"}}
    assert lint_files({"a.conflist": of(plugin)}) == []
    plugin["ipam"]["type"] = "spiderpool"
    assert codes(lint_files({"a.conflist": of(plugin)})) == []
    plugin["ipam"]["type"] = "host-local"
    plugin["ipam"] = {"type": "host-local", "subnet": "10.1.0.0/24"}
    assert codes(lint_files({"a.conflist": of(plugin)})) == ["unknown_key", "unknown_key"]


@pytest.mark.parametrize("key", ["allSlavesActive", "tlbDynamicLb"])
def test_bond_has_the_keys_of_its_latest_release(lint_files, key):
    bond = {"type": "bond", "mode": "balance-tlb", "miimon": "100", "links": [{"name": "a"}, {"name": "b"}], key: 1}
    assert lint_files({"a.conflist": of(bond)}) == []
