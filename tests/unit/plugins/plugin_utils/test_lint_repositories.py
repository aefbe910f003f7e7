# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The linter on what repositories contain: templates, manifests of all kinds, files for other programs."""

from __future__ import annotations

import base64
import json

import pytest

from ansible_collections.podwire.cni.tests.unit.plugins.plugin_utils.test_lint_rules import MACVLAN, NETWORK, codes, nad

# ---- templates

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
    "envsubst, in small letters": nad(
        "'{}'".format(MACVLAN.replace("eth0", "$master_of_node")), metadata="  name: $nad_name\n"
    ),
    "numbers of a shell": nad("'{}'".format(MACVLAN.replace('"eth0"', '"eth0", "mtu": ${MTU}'))),
    "more elements": nad(
        '\'{"cniVersion": "1.0.0", "type": "macvlan", "ipam": {"type": "whereabouts", '
        '"ipRanges": [{"range": "10.1.0.0/25"}${MORE}]}}\''
    ),
    "kustomize": nad("'{}'".format(MACVLAN.replace("eth0", "$(NIC)"))),
    "words of other programs": nad(
        "'{}'".format(MACVLAN.replace("eth0", "%NIC%")), metadata="  name: #{name}#\n  namespace: @namespace@\n"
    ),
    "square brackets": nad("'{}'".format(MACVLAN.replace('"eth0"', '"[[ .nic ]]", "mtu": [[ .mtu ]]'))),
    "a word in brackets": nad("'{}'".format(MACVLAN.replace("eth0", "<the name of your card>"))),
    "Jinja": nad(
        "'{}'".format(MACVLAN.replace('"eth0"', '"{{ nic }}"{% if mtu %}, "mtu": {{ mtu }}{% endif %}')),
        "{% for nic in nics %}\n",
    )
    + "{% endfor %}\n",
    "Jinja, on lines of statements": nad(f"'{MACVLAN}'", "% for nic in nics:\n") + "  % endfor\n",
    "a value of a delegate": "kind: ConfigMap\nmetadata: {name: a}\ndata:\n  a.conf: |\n"
    '    {"name": "a", "cniVersion": "0.3.1", "type": "multus", "delegates": [{"name": "b", "plugins": [\n'
    '      {"type": "bridge"}, {"type": "portmap", "capabilities": {"portMappings": {{ ports }}}}]}]}\n',
    "a type without a name": "kind: ConfigMap\nmetadata: {name: a}\ndata:\n  a.conf: |\n"
    '    {"cniVersion": "0.3.1", "type": "{{ type }}"}\n',
    "one of two names": nad(f"'{MACVLAN}'")
    .replace("metadata:\n", "{{- if .a }}\nmetadata:\n  name: other\n{{- else }}\nmetadata:\n{{- end }}\n")
    .replace("  name: storage\n", "{{- if .b }}\n  name: storage\n{{- end }}\n"),
    "a file that another program puts in": "kind: ConfigMap\nmetadata: {name: a}\ndata:\n  a.conf: |\n"
    '    {"name": "a", "cniVersion": "0.3.1", "type": "x",\n     "delegates": [__10-calico.conflist__]}\n',
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


@pytest.mark.parametrize("blanks", ["", "    "])
def test_a_config_that_comes_from_a_template_is_no_file_of_multus(lint_files, blanks):
    text = nad(f"|-\n{blanks}{{{{ .Config | indent 4 }}}}")
    assert [entry[1:] for entry in lint_files({"chart.yaml": text})] == [(6, 3, "info", "template")]
    assert codes(lint_files({"a.yaml": nad("|-\n")}), "info") == ["nad_file"]


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
    "text", ['"{cniVersion}"', "# cniVersion", nad(f"'{MACVLAN}'").rstrip(), "cniVersion: &a [*a]"]
)
def test_yaml_of_any_form_is_read(lint_files, text):
    assert codes(lint_files({"a.yaml": text})) == []


def test_statements_before_json_are_no_part_of_it(lint_files):
    text = "<% if @a -%>\n<% end -%>\n" + json.dumps(
        {**NETWORK["plugins"][0], "cniVersion": "1.0.0", "mtu": "a", "name": "<%= @b %>"}
    )
    assert codes(lint_files({"files/a.conf.erb": text})) == ["schema"]


@pytest.mark.parametrize(
    "text", ["{{ network | to_nice_json }}\n", "{% raw %}\n{{{\n{% endraw %}", '{"cniVersion": "1.0.0", {{ x }} {{ y']
)
def test_what_nobody_can_read_before_it_is_rendered_is_an_info(lint_files, text):
    assert [entry[3:] for entry in lint_files({"a.conflist": text})] == [("info", "template")]


# What is unknown in a string does not make the rest right.
@pytest.mark.parametrize("end", [",}}", "}}}", "]}}", "}} // comment", ', "dataDir": "/{{ x }}"'])
def test_json_that_is_no_template_is_still_an_error(lint_files, end):
    text = '{"cniVersion": "1.0.0", "type": "bridge", "name": "a", "ipam": {"type": "dhcp"' + end
    assert [entry[3] for entry in lint_files({"net.d/a.conf": text, "a.yaml": nad(f"'{text}'")})] == ["error", "error"]


def test_yaml_that_is_no_template_is_still_an_error(lint_files):
    assert codes(lint_files({"a.yaml": nad("{")})) == ["yaml_invalid"]
    text = "kind: Network\nspec:\n  additionalNetworks:\n  - name: a\n  rawCNIConfig: {}{\n"
    assert codes(lint_files({"a.yaml": text})) == ["yaml_invalid"]
    # Who reads another file is not known.
    assert lint_files({"a.yaml": text.replace("kind", "a")}) == []


@pytest.mark.parametrize("rest", ["  a: [{{ .Values.a }}\n", "{{- if .a }}\n - b: c\n{{- end }}\n"])
def test_a_chart_that_is_no_yaml_before_it_is_rendered_is_an_info(lint_files, rest):
    assert [entry[3:] for entry in lint_files({"chart.yaml": nad(f"'{MACVLAN}'") + rest})] == [("info", "template")]


def test_a_name_that_the_api_completes_is_one(lint_files):
    text = nad(f"'{MACVLAN}'", metadata="  generateName: storage-\n")
    assert lint_files({"a.yaml": f"{text}---\n{text}"}) == []
    assert codes(lint_files({"a.yaml": text.replace("storage-", "Storage_").replace("bridge", "brigde")})) == [
        "nad_name",
        "schema",
    ]


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [
        ("  name: blue\n", []),
        ("  name: blue\n  namespace: tenant\n", []),
        ("  name: {{ name }}\n  namespace: tenant\n", []),
        ("  name: storage\n", ["nad_name"]),
        ("  name: blue\n  namespace: other\n", ["nad_name"]),
    ],
)
def test_a_network_of_ovn_names_its_object(lint_files, metadata, wanted):
    config = {"cniVersion": "1.0.0", "name": "blue", "type": "ovn-k8s-cni-overlay", "topology": "layer2"}
    text = json.dumps({**config, "netAttachDefName": "tenant/blue"})
    found = lint_files({"a.yaml": nad(f"'{text}'", metadata=metadata)})
    assert codes(found) == wanted
    # Without a topology it is the network of the cluster, which no object describes.
    assert codes(lint_files({"a.yaml": nad(f"'{text}'".replace("layer2", ""), metadata=metadata)})) == []


def test_a_network_in_another_object_has_the_name_of_it(lint_files):
    text = nad(f"'{MACVLAN}'").replace("NetworkAttachmentDefinition", "NetworkDefinition")
    assert lint_files({"a.yaml": text}) == []
    assert codes(lint_files({"a.yaml": text.replace("  name: storage\n", "  labels: {}\n")})) == ["no_name"]
    patch = f"- op: replace\n  path: /spec/config\n  value: '{MACVLAN}'\n"
    assert lint_files({"a.yaml": patch}) == []
    assert codes(lint_files({"a.yaml": patch.replace("spec", "data")})) == ["no_name"]
    assert codes(lint_files({"a.yaml": patch.replace("bridge", "brigde")})) == ["schema"]


def test_the_value_of_a_wrong_key_does_not_matter(lint_files):
    plugin = {"type": "bridge", "subnet": "{{ subnet }}", "{{ key }}": 1, "ipam": {"type": "dhcp"}}
    found = lint_files({"a.conflist": {**NETWORK, "plugins": [plugin]}})
    assert codes(found) == []  # The template may write any keys.
    del plugin["{{ key }}"]
    assert codes(lint_files({"a.conflist": {**NETWORK, "plugins": [plugin]}})) == ["unknown_key"]
    plugin["Mtu"] = plugin.pop("subnet")
    assert "key_case" in codes(lint_files({"a.conflist": {**NETWORK, "plugins": [plugin]}}), "info")


@pytest.mark.parametrize("text", ['["a", "b"]', "[[1, 2]]", '[["x"]]', '[[{"subnet": "10.1.0.0/24"}]]', '"a{b}"'])
def test_json_that_only_looks_like_a_template_is_judged(lint_files, text):
    found = lint_files({"a.conflist": {**NETWORK, "plugins": [{"type": "bridge", "mtu": json.loads(text)}]}})
    assert codes(found) == ["schema"]
    assert codes(found, "info") == []


@pytest.mark.parametrize(
    "value",
    [
        "SUBNET",
        "POD_CIDR",
        "YOUR-SUBNET/24",
        "{SUBNET}",
        "{subnet}",
        "%SUBNET%",
        "<SUBNET 1>/24",
        "10.x.x.x/20",
        "x.X.x.x",
    ],
)
def test_a_word_for_a_value_is_an_info(lint_files, value):
    """Where an address is needed, nobody means it: another program, or a person, replaces it."""
    plugin = {"type": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": value}]]}}
    found = lint_files({"a.conflist": {**NETWORK, "plugins": [plugin]}})
    assert [entry[3:] for entry in found if entry[1] != 1] in ([("info", "template")], [])
    assert codes(found) == []
    assert codes(found, "info")[:1] == ["template"]


@pytest.mark.parametrize("key", ["mtu", "vlan"])
def test_a_word_for_a_number_is_an_info(lint_files, key):
    network = json.dumps({**NETWORK, "plugins": [{"type": "bridge", key: "LINK_MTU"}]})
    assert codes(lint_files({"a.conflist": network}), "info", "error") == ["template"]
    assert codes(lint_files({"a.conflist": network.replace('"LINK_MTU"', "LINK_MTU")}), "info", "error") == ["template"]


@pytest.mark.parametrize(
    ("key", "value"), [("isGateway", "TRUE"), ("ipMasqBackend", "NFTABLES"), ("mtu", "big"), ("vlan", "0X10")]
)
def test_what_is_only_wrong_is_no_template(lint_files, key, value):
    found = lint_files(
        {"a.conflist": {**NETWORK, "plugins": [{"type": "bridge", key: value, "ipam": {"type": "dhcp"}}]}}
    )
    assert codes(found, "error") == ["schema"]


# ---- what is no network, and what is one


NO_NETWORKS = {
    "daemon-config.json": {"cniVersion": "0.3.1", "logLevel": "verbose", "cniConfigDir": "/host/etc/cni/net.d"},
    "result.json": {"cniVersion": "1.0.0", "interfaces": [], "ips": [{"address": "10.1.0.2/24"}]},
    "cache.json": {"kind": "cniCacheV1", "containerId": "a", "config": "e30=", "cniVersion": "1.0.0"},
    "package.json": {"name": "web", "plugins": ["a"], "type": "module"},
    ".eslintrc.json": {"plugins": ["react"], "extends": []},
    "nginx.conf": "server { listen 80; }\n",
    "list.json": "[1, 2]",
    "broken.json": "{",
    "broken.yaml": "a: {{ template\n",
    "net.d/87-podman-bridge.conflist": "/etc/static/cni/net.d/87-podman-bridge.conflist",
    "README.md": '```json\n{"cniVersion": "1.0.0", "type": "x"}\n```\n',
    "values.yaml": "kind: NetworkAttachmentDefinition\ncni:\n  cniVersion: 0.3.1\n".replace("kind", "x"),
    "crd.yaml": "kind: CustomResourceDefinition\nspec: {names: {kind: NetworkAttachmentDefinition}}\n",
    "role.yaml": "kind: ClusterRole\nrules: [{resources: [network-attachment-definitions]}]\n",
    "patch.yaml": "patches:\n- target: {kind: NetworkAttachmentDefinition, name: a}\n  path: p.yaml\n",
    "types.yaml": 'kind: "NetworkAttachmentDefinition"\napi_family: "k8s.cni.cncf.io"\nlistview: {name: a}\n',
    "manual.md": "Write\n\n```yaml\nkind: NetworkAttachmentDefinition\nspec: {config: '...'}\n```\n",
    "node.nix": '{\n  etc."cni/net.d/a.conf".text = \'\'{"cniVersion": "1.0.0", "type": "x"}\'\';\n}\n',
    "apply.sh": "#!/bin/sh\ncat <<EOF >a\nkind: NetworkAttachmentDefinition\nmetadata:\n  name: $a\nEOF\n",
    "apply": "#!/bin/sh\ncat <<EOF >a\nkind: NetworkAttachmentDefinition\nmetadata:\n  name: $a\nEOF\n",
    "delete.yaml": f"{nad('x')[: nad('x').index('spec')]}$patch: delete\n",
    "owner.yaml": "kind: Pod\nmetadata: {ownerReferences: [{kind: NetworkAttachmentDefinition, name: a, uid: b}]}\n",
    "multus.yaml": 'kind: ConfigMap\nmetadata: {name: a}\ndata:\n  daemon-config.json: |\n    {"cniVersion": "1.0.0",\n'
    '     "multusConfigFile": "auto"}\n  a.sh: |\n    cat >a <<EOF\n    {"cniVersion": "1", "type": "x"}\n    EOF\n',
}


@pytest.mark.parametrize("name", NO_NETWORKS)
def test_what_is_no_network_is_not_judged_as_one(lint_files, name):
    assert lint_files({name: NO_NETWORKS[name]}) == []


BROKEN = '{"cniVersion": "1.0.0", "name": "a", "plugins": [{"type": "bridge", "mtu": "big"}]}'
BLOCK = BROKEN.replace('"plugins"', '\n      "plugins"')
IN_MANIFESTS = {
    "config map": f"kind: ConfigMap\ndata:\n  cni-conf.json: |\n    {BLOCK}\n",
    "binary of a list": f"kind: List\nitems:\n- kind: ConfigMap\n  data:\n    a.conflist: >-\n     {BLOCK}\n",
    "network operator": f"kind: Network\nspec:\n  additionalNetworks:\n  - name: a\n    rawCNIConfig: '{BLOCK}'\n",
    "cloud-init": f"#cloud-config\nwrite_files:\n- path: /etc/cni/net.d/a.conflist\n  content: |\n    {BLOCK}\n",
    "list of definitions": "apiVersion: v1\nkind: List\nitems:\n- "
    + nad(f"'{BLOCK}'").replace("\n", "\n  ").rstrip()
    + "\n",
    "template of OpenShift": "kind: Template\nobjects:\n- " + nad(f"'{BLOCK}'").replace("\n", "\n  ").rstrip() + "\n",
    "patch": f"- op: replace\n  path: /spec/config\n  value: '{BLOCK}'\n",
    "task of Ansible": f"- ansible.builtin.copy:\n    dest: /etc/cni/net.d/a.conflist\n    content: |\n      {BLOCK}\n",
    "a single plugin without a version": 'kind: ConfigMap\ndata:\n  cni-conf.json: |\n    {"name": "a",\n'
    '     "type": "bridge", "mtu": "big", "ipam": {"type": "dhcp"}}\n',
    "another name": 'data:\n  a.conf: |\n    {"name": "a", "type": "bridge", "mtu": "big", "ipam": {"type": "dhcp"}}\n',
    "delegates": 'data:\n  a: >-\n    {"name": "a", "type": "multus", "delegates": [{"name": "b", "type": "bridge",\n'
    '      "mtu": "big"}]}\n',
    "without a version": 'data:\n  a.conflist: |\n    {"name": "a", "plugins": [{"type": "bridge", "mtu": "big"}]}\n',
    "JSON with a character that YAML has not": json.dumps(
        {"a": "\x7f", "data": {"a.conf": BROKEN}}, ensure_ascii=False
    ),
    "definition in the values of a chart": "kind: HelmRelease\nspec:\n  a:\n    kind: NetworkAttachmentDefinition\n"
    f"    spec:\n      config: '{BLOCK}'\n",
    "manifest in JSON": json.dumps({"kind": "ConfigMap", "data": {"a.conf": BROKEN}}, indent=2),
}


@pytest.mark.parametrize("name", IN_MANIFESTS)
@pytest.mark.parametrize("before", ["", "kind: Pod\nmetadata: {name: a}\n---\n"])
def test_a_network_in_a_manifest_is_judged_at_its_place(lint_files, name, before):
    text = before + IN_MANIFESTS[name]
    (entry,) = (entry for entry in lint_files({"a.yaml": text}) if entry[4] != "no_version")
    assert entry[3:] == ("error", "schema")
    assert text.split("\n")[entry[1] - 1][entry[2] - 1 :].startswith(('"big"', '\\"big'))


@pytest.mark.parametrize("kind", ["SriovNetwork", "HostDeviceNetwork", "MacvlanNetwork"])
@pytest.mark.parametrize("style", ["|", "'"])
def test_the_ipam_of_an_operator_is_judged_at_its_place(lint_files, kind, style):
    ipam = '{"type": "host-local",\n     "subnet": "10.1.0.0/24",\n     "rangeStart": "10.2.0.9"}'
    value = f"|\n    {ipam}" if style == "|" else f"'{ipam}'"
    text = f"kind: {kind}\nmetadata: {{name: a}}\nspec:\n  ipam: {value}\n  resourceName: a\n"
    (entry,) = lint_files({"a.yaml": text})
    assert entry[3:] == ("error", "schema")
    assert text.split("\n")[entry[1] - 1][entry[2] - 1 :].startswith('"10.2.0.9"')
    assert lint_files({"a.yaml": text.replace("10.2.0.9", "10.1.0.9")}) == []
    assert codes(lint_files({"a.yaml": text.replace("10.2.0.9", "{{ start }}")})) == []


# ---- definitions in the wrong case or place


@pytest.mark.parametrize(
    ("old", "new", "line", "level", "code"),
    [
        ("kind:", "Kind:", 2, "error", "nad_kind"),
        ("kind:", "Type:", 2, "error", "nad_kind"),
        ("kind:", "type:", 2, "error", "nad_kind"),
        ("kind: NetworkAttachmentDefinition", "kind: networkAttachmentDefinition", 2, "error", "nad_kind"),
        ("kind: NetworkAttachmentDefinition", "kind: NetworkAttachmentDefinitions", 2, "error", "nad_kind"),
        ("kind: NetworkAttachmentDefinition", "kind: network-attachment-definition", 2, "error", "nad_kind"),
        ("apiVersion:", "apiversion:", 1, "error", "nad_kind"),
        ("  name: storage\n", "  name: storage\n  annotations:\n    namespace: a\n", 6, "warning", "nad_name"),
        ("  name: storage\n", "  name: storage\n  labels: {namespace: a}\n", 5, "warning", "nad_name"),
        ("spec:\n", "namespace: a\nspec:\n", 5, "warning", "nad_spec"),
        ("spec:\n  config", "config", 5, "error", "nad_spec"),
        ("spec:", "Spec:", 6, "error", "nad_spec"),
        ("spec:", "specs:", 6, "error", "nad_spec"),
        ("spec:", "spce:", 6, "error", "nad_spec"),
        ("metadata:", "Metadata:", 4, "error", "nad_spec"),
        ("spec:\n  config", "  config", 5, "error", "nad_spec"),
        ("  config:", "  Config:", 6, "error", "nad_spec"),
        ("  config:", "  configs:", 6, "error", "nad_spec"),
        ("kind: NetworkAttachmentDefinition", "kind: NetworkAttachmentDefintion", 2, "error", "nad_kind"),
        ("kind: NetworkAttachmentDefinition", "kind: NetworkAtachmentDefinitoin", 2, "error", "nad_kind"),
    ],
)
def test_a_definition_in_the_wrong_case_or_place_is_told_so(lint_files, old, new, line, level, code):
    found = lint_files({"a.yaml": nad(f"'{MACVLAN}'").replace(old, new, 1)})
    assert (line, level, code) in [(entry[1], *entry[3:]) for entry in found]
    assert len([entry for entry in found if entry[3] != "info"]) == 1
    # No other file is meant.
    assert "nad_file" not in codes(found, "info")


def test_a_kind_is_misspelled_also_if_nothing_else_says_cni(lint_files):
    text = nad("'{}'").replace("NetworkAttachmentDefinition", "NetworkAttachmentDefintion")
    assert codes(lint_files({"a.yaml": text}))[0] == "nad_kind"
    other = nad("'{}'").replace("NetworkAttachmentDefinition", "NetworkAttachment")
    assert codes(lint_files({"a.yaml": other})) == []


@pytest.mark.parametrize(("content", "expected"), [(MACVLAN, ["not_checked"]), ('{"a": 1}', []), ("\xff", [])])
def test_a_network_in_binary_data_is_not_checked(lint_files, content, expected):
    encoded = base64.b64encode(content.encode("latin-1")).decode()
    found = lint_files({"a.yaml": f"kind: ConfigMap\nmetadata: {{name: a}}\nbinaryData:\n  a.conf: {encoded}\n"})
    assert [entry[4] for entry in found] == expected
    assert all(entry[1:4] == (4, 11, "info") for entry in found)


def test_what_is_in_a_definition_of_the_wrong_case_is_judged(lint_files):
    text = nad("'{}'".format(MACVLAN.replace("bridge", "brigde"))).replace("kind:", "Kind:")
    assert codes(lint_files({"a.yaml": text})) == ["nad_kind", "schema"]
