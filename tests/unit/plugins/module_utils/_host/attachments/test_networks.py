# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import networks as attach_networks
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView


def write(directory, number):
    conf = {"cniVersion": "1.0.0", "name": f"net{number}", "plugins": [{"type": "bridge"}]}
    (directory / f"{number}0.conflist").write_text(json.dumps(conf))


def test_each_file_is_read_once(tmp_path, monkeypatch):
    read = []
    whole = attach_networks.network_conf_from_file
    monkeypatch.setattr(attach_networks, "network_conf_from_file", lambda path, data: read.append(path) or whole(path))
    for number in range(1, 5):
        write(tmp_path, number)
    networks = attach_networks.Networks(str(tmp_path), [], HostView())
    assert [networks.load(f"net{number}").name for number in (4, 2, 1, 3, 4)] == [
        "net4",
        "net2",
        "net1",
        "net3",
        "net4",
    ]
    assert sorted(read) == [str(tmp_path / f"{number}0.conflist") for number in range(1, 5)]


def test_a_broken_file_does_not_hide_the_networks_of_other_files(tmp_path):
    for number in range(1, 4):
        write(tmp_path, number)
    (tmp_path / "15.conflist").write_text("{")
    networks = attach_networks.Networks(str(tmp_path), [], HostView())
    for name in ("net1", "net2", "net3"):
        assert networks.load(name).name == name
    with pytest.raises(HostError) as caught:
        networks.load("net4")
    assert (caught.value.code, caught.value.facts["file"]) == ("bad_config", str(tmp_path / "15.conflist"))
