# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The linter on configurations of containerd, CRI-O and Nomad."""

from __future__ import annotations

import pytest

CRI = {1: "cri", 2: '"io.containerd.grpc.v1.cri"', 3: "'io.containerd.cri.v1.runtime'"}


def containerd(version, *lines, section=None):
    head = f"version = {version}\n" if version else ""
    return f"{head}[plugins.{section or CRI[version or 1]}.cni]\n" + "\n".join(lines) + "\n"


GOOD = {
    "containerd 1": containerd(None, 'bin_dir = "/opt/cni/bin"', "max_conf_num = 1"),
    "containerd 2": containerd(2, 'bin_dir = "/opt/cni/bin"', 'conf_dir = "/etc/cni/net.d"', 'conf_template = ""'),
    "containerd 3": containerd(3, "bin_dirs = ['/opt/cni/bin']", "bin_dir = ''", "setup_serially = true"),
    "containerd 4": containerd(4, "bin_dirs = ['/opt/cni/bin']", section=CRI[3]),
    "containerd, imports": 'version = 2\nimports = ["conf.d/*.toml"]\n[plugins."io.containerd.grpc.v1.cri"]\nx = 1\n',
    "containerd of Docker": 'disabled_plugins = ["cri"]\n#[plugins.cri]\n',
    "containerd, handler": 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata]\n'
    'cni_conf_dir = "/etc/cni/kata"\ncni_max_conf_num = 1\nruntime_type = "x"\n',
    "k3s": '{{ template "base" . }}\n' + containerd(None, 'bin_dir = "{{ .Bin }}"', section=CRI[3]),
    "Go": "version = 2\n{{- if .Root }}\nroot = {{ .Root }}\n{{- end }}\n"
    "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.{{.Name}}]\nruntime_type = 'a'\n"
    '[plugins."io.containerd.grpc.v1.cri".cni]\nbin_dir = {{ .Bin }}\nmax_conf_num = {{ .Max }}\n'
    '[a]\npassword = "{{ .P }}"\n',
    "printf": containerd(2, 'bin_dir = "%s"', "conf_dir = 'CNI_DIR'"),
    "other": 'title = "x"\n[owner]\nplugins = 5\n',
    "other with a version": 'version = 2\n[plugins.opt]\npath = "x"\n',
    "a list as version": containerd("[1]", 'bin_dir = "/opt"', section=CRI[2]),
    "a byte that TOML does not allow": "{% if a %}\n# \x01 io.containerd.grpc.v1.cri\n{% endif %}\n",
}
CRIO = {
    "CRI-O": '[crio.network]\nnetwork_dir = "/etc/cni/net.d"\nplugin_dirs = ["/opt/cni/bin"]\n',
    "CRI-O, runtime": '[crio.runtime]\ndefault_runtime = "crun"\n[crio]\n[crio.image]\npause_image = "x"\n',
    "CRI-O, template": '[crio.network]\nnetwork_dir = "{{ crio_network_dir }}"\nplugin_dirs = [\n'
    '{% for d in x %}\n  "{{ d }}",\n{% endfor %}\n]\n',
}
NOMAD = {
    "Nomad": 'client {\n  cni_path = "/opt/cni/bin:/usr/lib/cni"\n  cni_config_dir = "/opt/cni/config"\n}\n',
    "Nomad, template": 'client {\n  cni_path = "{{ nomad_cni_path }}"\n  cni_config_dir = "${config}"\n}\n',
    "job": 'job "a" {\n  group "g" {\n    network { mode = "cni/apps" }\n    client { cni_pth = file("x") }\n  }\n}\n',
}


@pytest.mark.parametrize("name", [*GOOD, *CRIO, *NOMAD])
def test_a_sound_configuration_is_silent(lint_files, name):
    file = "a.toml" if name in GOOD else "crio.conf.d/a.conf" if name in CRIO else "a.hcl"
    assert [entry for entry in lint_files({file: {**GOOD, **CRIO, **NOMAD}[name]}) if entry[3] != "info"] == []


@pytest.mark.parametrize("ending", ["", ".j2", ".tmpl"])
@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.toml", containerd(3, "bin_dirs = ['/opt/a']", "bin_dir = '/opt/b'"), (4, 1, "error", "bin_dir_twice")),
        ("a.toml", containerd(2, "bin_dirs = ['/opt/a']"), (3, 1, "warning", "unknown_key")),
        ("a.toml", containerd(2, 'bin_dri = "/opt/a"'), (3, 1, "warning", "unknown_key")),
        ("a.toml", containerd(3, "  conf_dir = 'etc/cni'"), (3, 3, "warning", "relative_path")),
        ("a.toml", containerd(2, 'max_conf_num = "1"'), (3, 1, "error", "bad_setting")),
        ("a.toml", containerd(3, "bin_dirs = '/opt/a'"), (3, 1, "error", "bad_setting")),
        ("a.toml", containerd(2, 'bin_dir = "/a"', section="cri"), (2, 1, "error", "bad_setting")),
        ("a.toml", containerd(3, 'bin_dir = "/a"', section="cri"), (1, 1, "warning", "ignored_setting")),
        ("a.toml", containerd(2, 'bin_dir = "/a"') + "[plugins.opt]\npath = '/a'\n", (4, 1, "error", "bad_setting")),
        ("containerd.toml", 'version = 3\ndisabled_plugins = ["cri"]\n', (2, 1, "error", "bad_setting")),
        ("containerd.toml", "version = 2\nrequired_plugins = ['cri']\n", (2, 1, "error", "bad_setting")),
        ("a.toml", containerd(3, 'bin_dir = "/a"', section=CRI[2]), (1, 1, "warning", "ignored_setting")),
        ("a.toml", containerd(None, 'bin_dir = "/a"', section=CRI[2]), (1, 1, "warning", "ignored_setting")),
        (
            "a.toml",
            'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n' + containerd(2, 'bin_dir = "/a"'),
            (1, 1, "warning", "ignored_setting"),
        ),
        ("a.toml", containerd(2, "bin_dri = '/a'", "[x]", 'env = ["A={{ a }}/b"]'), (3, 1, "warning", "unknown_key")),
        ("a.toml", containerd(2, "bin_dir = /opt"), (3, 1, "error", "not_understood")),
        (
            "a.toml",
            containerd(2, 'x = """', 'y"""', "", "  z = [", "  1, ]", "  = 1"),
            (8, 3, "error", "not_understood"),
        ),
        ("a.toml", containerd(2, "x = [", *["  1,"] * 300), (3, 1, "error", "not_understood")),
        ("a.toml", containerd(2, "x = 1", "y = 2", "x = 3", "z = 1"), (5, 1, "error", "not_understood")),
        (
            "config.toml",
            'version = 2\n[plugins."io.containerd.grpc.v1.cri".registry.configs."a".auth]\npassword = "hunter22"\n',
            (3, 1, "warning", "secret_in_file"),
        ),
        (
            "config.toml",
            "[plugins.cri.a]\r\npassword = ''\r\n[[plugins.cri.b]]\r\n  c = {password = 'hunter22'}\r\n",
            (4, 3, "warning", "secret_in_file"),
        ),
        (
            "config.toml",
            '[plugins.other]\nbin_dir = "a"\nmax_conf_num = "a"\n' + containerd(None, 'max_conf_num = "1"'),
            (5, 1, "error", "bad_setting"),
        ),
        ("crio.conf", "[crio.network]\nnetwork_dir = 5\n", (2, 1, "error", "bad_setting")),
        ("crio.conf.d/a.conf", '[crio.network]\nplugin_dirs = "/opt"\n', (2, 1, "error", "bad_setting")),
        ("crio.conf.d/a.conf", '[crio.network]\nplugin_dirs = ["opt"]\n', (2, 1, "warning", "relative_path")),
        ("crio.conf.d/a.conf", '[crio.network]\nplugin_drs = ["/opt"]\n', (2, 1, "warning", "unknown_key")),
        ("crio.conf.d/a.conf", '[network]\nplugin_dirs = ["/opt"]\n', (2, 1, "warning", "ignored_setting")),
        ("a.conf", '[crio.runtime]\nnetwork_dir = "/etc/cni"\n', (2, 1, "warning", "ignored_setting")),
        ("a.hcl", 'client {\n  cni_path = "opt/cni/bin"\n}\n', (2, 3, "warning", "relative_path")),
        ("a.hcl", 'client {\n  cni_pth = "/opt/cni/bin"\n}\n', (2, 3, "error", "unknown_key")),
        ("a.hcl", 'client {\n}\nserver {\n  cni_path = "/opt/cni/bin"\n}\n', (4, 3, "error", "unknown_key")),
        ("a.json", '{"client": {"cni_path": "opt/cni/bin"}}\n', (1, 13, "warning", "relative_path")),
        ("a.json", '{"client": {\n  "cni_path": "opt/cni/bin"}}\n', (2, 3, "warning", "relative_path")),
    ],
)
def test_what_is_wrong_without_a_host(lint_files, name, text, expected, ending):
    assert [entry[1:] for entry in lint_files({name + ending: text})] == [expected]
    assert "hunter22" not in lint_files.texts[0]


BRANCHES = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
{% if image %}
sandbox_image = "a"
{% else %}
sandbox_image = "b"
x = [
  1,
]
{% endif %}
[plugins."io.containerd.grpc.v1.cri".cni]
{% if many %}
bin_dir = "/opt"
conf_dir = "etc/cni"
{% else %}
bin_dir = ""
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "opt"
bin_dri = 1
[x]
{% endif %}
"""


def test_of_a_template_that_says_one_thing_twice_the_first_counts(lint_files):
    found = lint_files({"config.toml.j2": BRANCHES})
    assert found == [
        ("config.toml.j2", 6, 1, "info", "template"),
        ("config.toml.j2", 14, 1, "warning", "relative_path"),
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ("{% if a %}", "bin_dirs = ['/a']", "{% else %}", "bin_dir = '/b'", "{% endif %}"),
        ("bin_dir = '/b'", "{{ if .Off }}", "[x]", "{{ end }}"),
    ],
)
def test_what_only_one_branch_may_have_is_no_contradiction(lint_files, lines):
    text = containerd(3, *lines)
    text = (
        text
        if "bin_dirs" in text
        else "{{ if .Off }}\ndisabled_plugins = ['io.containerd.cri.v1.runtime']\n{{ end }}\n" + text
    )
    assert [entry for entry in lint_files({"config.toml.tmpl": text}) if entry[3] != "info"] == []


def test_a_typing_error_is_told(lint_files):
    lint_files({"a.hcl": 'client {\n  cni_config_dri = "/opt/cni/bin"\n}\n'})
    assert "did you mean cni_config_dir?" in lint_files.texts[0]
