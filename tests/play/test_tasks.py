# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible adds to modules: templates, files beside a play, its lines, defaults of a group, the background."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

SITE = {"all": {"hosts": {"here": {"ansible_connection": "local"}}}}
EDGE = '{"plugins":[{"type":"ptp","mtu":%s,"ipam":{"type":"host-local","subnet":"10.56.0.0/24"}}],"cniVersion":"0.4.0"}'


@pytest.fixture
def controller(controller):
    return controller(SITE)


def test_networks_from_a_template_and_a_file_beside_the_play(controller, generations):
    (controller.folder / "files").mkdir()
    single = {"cniVersion": "1.0.0", "name": "single", "type": "loopback"}
    (controller.folder / "files" / "single.conf").write_text(json.dumps(single))
    networks = [{"name": "edge", "content": "{{ edge_text | format('1500.0') }}"}, {"src": "single.conf"}]
    places = {"conf_dir": f"{controller.folder}/net.d", "cache_dir": f"{controller.folder}/cache"}
    task = {"podwire.cni.cni_conf": {"networks": networks, "bin_dirs": [str(generations["new"])], **places}}
    (created,) = controller.play(task, edge_text=EDGE).of("podwire.cni.cni_conf")
    assert [row["action"] for row in created["networks"]] == ["created"] * 2
    edge, file = (Path(row["path"]) for row in created["networks"])
    # The template does not turn the text into a structure and back.
    assert '"mtu": 1500.0,' in edge.read_text()
    assert json.loads(file.read_text())["name"] == "single"


# Each with the code of what is wrong, in its line.
BAD = """\
- hosts: all
  gather_facts: false
  vars:
    networks:
      - name: bad
        conflist: {cniVersion: 1.0, plugins: [{type: loopback}]}  # version_not_string
      - name: ../x  # bad_name
        state: absent
      - name: bad
        src: no-such-file.conflist  # src_unreadable
      - name: bad
        file: ../x.conflist  # bad_file_name
        conflist: {cniVersion: "1.0.0", plugins: [{type: loopback}]}
  tasks:
    - podwire.cni.cni_conf:
        networks: ["{{ item }}"]
      loop: "{{ networks }}"
"""


def test_bad_values_of_variables_are_refused_with_their_lines_before_the_host_is_touched(controller):
    play = controller.folder / "bad.yml"
    play.write_text(BAD)
    # A module on the host would fail otherwise.
    run = controller.run(str(play), status=2, ansible_python_interpreter="/nonexistent/python")
    (result,) = run.of("podwire.cni.cni_conf")
    wrong = [(number, *re.findall(r"# (\w+)$", line)) for number, line in enumerate(BAD.splitlines(), 1)]
    problems = [problem for row in result["results"] for problem in row["problems"]]
    assert [(problem["line"], problem["code"]) for problem in problems] == [entry for entry in wrong if entry[1:]]
    assert [row["code"] for row in result["results"]] == [problem["code"] for problem in problems]


def test_the_defaults_of_the_group_reach_each_module(controller, generations):
    folder = controller.folder
    tasks = [
        {
            "podwire.cni.cni_plugins": {
                "src": str(generations["new"]),
                "plugins": ["loopback"],
                "mode": "0750",
                "group": "1",
            }
        },
        {"podwire.cni.cni_plugins": {"state": "restored"}},
    ]
    defaults = {
        "conf_dir": f"{folder}/net.d",
        "bin_dirs": [f"{folder}/bin", "/opt/cni/bin"],
        "cache_dir": f"{folder}/cache",
    }
    play = {"block": tasks, "module_defaults": {"group/podwire.cni.all": defaults}}
    installed, removed = controller.play(play).of("podwire.cni.cni_plugins")
    assert installed["plugins"][0]["path"] == f"{folder}/bin/loopback"
    assert [step["kind"] for step in installed["actions"]] == ["make_directory", "install"]
    assert [row["action"] for row in removed["plugins"]] == ["removed"]


def test_a_task_in_the_background_does_what_it_does_in_the_foreground(controller, generations):
    install = {"podwire.cni.cni_plugins": {"src": str(generations["new"]), "plugins": ["loopback", "ptp"]}}
    remove = {"podwire.cni.cni_plugins": {"state": "restored"}, "async": 120, "poll": 0, "register": "started"}
    wait = {
        "ansible.builtin.async_status": {"jid": "{{ started.ansible_job_id }}"},
        "register": "ended",
        "until": "ended is finished",
        "retries": 600,
        "delay": 0.1,
    }
    tasks = [{**install, "async": 120, "poll": 1}, {**install, "async": 120, "poll": 1}, remove, wait]
    # HOME need not be what the user database says.
    run = controller.play(*tasks, ansible_async_dir=f"{controller.folder}/async")
    first, second, _started = run.of("podwire.cni.cni_plugins")
    assert [row["action"] for row in first["plugins"]] == ["installed"] * 2
    assert (first["changed"], second["changed"]) == (True, False)
    (ended,) = run.of("ansible.builtin.async_status")
    assert [row["action"] for row in ended["plugins"]] == ["removed"] * 2
