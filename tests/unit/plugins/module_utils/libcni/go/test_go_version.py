# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Spec versions: what is not in test_version.py (Go: pkg/version)."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import types, version
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import JSONError, ResultError, VersionError

PREVIOUS = {
    "cniVersion": "1.0.0",
    "interfaces": [
        {
            "name": "eth0",
            "mac": "00:11:22:33:44:55",
            "sandbox": "/proc/3553/ns/net",
            "pciID": "8086:9a01",
            "socketPath": "/path/to/vhost/fd",
        }
    ],
    "ips": [{"version": "4", "interface": 0, "address": "1.2.3.30/24", "gateway": "1.2.3.1"}],
}


def test_prev_result():
    expected = {**PREVIOUS, "ips": [{"interface": 0, "address": "1.2.3.30/24", "gateway": "1.2.3.1"}]}
    assert types.parse_prev_result("1.0.0", PREVIOUS).to_dict() == expected


@pytest.mark.parametrize(
    "raw",
    [{"cniVersion": "5678.456"}, {"cniVersion": "0.2.0", "ip4": {"ip": "1.2.3.30/24", "gateway": "1.2.3.1"}}],
)
def test_prev_result_of_another_version(raw):
    with pytest.raises(ResultError) as caught:
        types.parse_prev_result("1.1.0", raw)
    assert str(caught.value) == (
        "could not parse prevResult: result type supports [1.0.0 1.1.0] but unmarshalled CNIVersion is "
        f'"{raw["cniVersion"]}"'
    )


@pytest.mark.parametrize(
    ("newer", "older"), [("1.2.34", "1.2.14"), ("2.5.4", "2.4.4"), ("1.2.3", "0.2.3"), ("0.4.0", "0.3.1")]
)
def test_greater_than_or_equal_to(newer, older):
    assert version.greater_than_or_equal_to(newer, older)
    assert not version.greater_than_or_equal_to(older, newer)
    assert version.greater_than_or_equal_to(newer, newer)


@pytest.mark.parametrize(("first", "second"), [("1.2.34", "asdadf"), ("adsfad", "2.5.4")])
def test_comparison_of_what_is_no_version(first, second):
    with pytest.raises(VersionError):
        version.greater_than_or_equal_to(first, second)


@pytest.mark.parametrize(
    ("first", "second", "greater"), [("1.1.0", "1.1.1", False), ("1.1.1", "1.1.0", True), ("1.1.1", "1.1.1", False)]
)
def test_greater_than(first, second, greater):
    assert version.greater_than(first, second) is greater


def test_plugin_info():
    data = b'{"cniVersion":"some-library-version","supportedVersions":["some-version","some-other-version"]}'
    assert version.decode_plugin_info(data) == ["some-version", "some-other-version"]
    with pytest.raises(JSONError, match=r"^decoding version info: "):
        version.decode_plugin_info(b"{{{")
