# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.podwire.cni.plugins.filter.cni_restored import FilterModule

cni_restored = FilterModule().filters()["cni_restored"]


def file(network, managed=True, original=False):
    return {"managed": managed, "managed_as": network if managed else "", "original": original}


def aside(name, network, managed=False):
    return {"original_path": f"/etc/cni/net.d/{name}", "network": network, "managed": managed}


def test_what_was_there_comes_back_and_what_was_written_goes():
    found = {
        "conf": [file("pods"), file("adopted", original=True), file("", managed=False), file("replaces")],
        "aside": [
            aside("87-podman.conflist", "podman"),
            aside("20-old.conflist", "old", True),
            aside("5.conf", "replaces"),
        ],
    }
    assert cni_restored(found) == [
        {"name": "pods", "state": "absent"},
        {"name": "old", "state": "absent"},
        {"name": "adopted", "state": "restored"},
        {"file": "87-podman.conflist", "state": "restored"},
        {"file": "5.conf", "state": "restored"},
    ]


def test_nothing_is_managed():
    assert cni_restored({"conf": [file("", managed=False)], "aside": []}) == []


def test_each_network_once():
    found = {"conf": [file("pods"), file("pods")], "aside": [aside("20-pods.conflist", "pods", True)]}
    assert cni_restored(found) == [{"name": "pods", "state": "absent"}]


@pytest.mark.parametrize("bad", [None, [], {}, {"conf": []}, {"conf": [1], "aside": []}])
def test_what_is_no_result_of_cni_info(bad):
    with pytest.raises(AnsibleFilterError, match="must be a result of cni_info with 'conf'"):
        cni_restored(bad)
