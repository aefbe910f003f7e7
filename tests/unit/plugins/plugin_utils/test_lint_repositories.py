# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The linter on what repositories contain: templates, manifests of all kinds, files for other programs."""

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils import lint

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
