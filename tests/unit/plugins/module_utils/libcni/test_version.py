# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Spec versions (Go: pkg/version tests)."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import version
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import JSONError, PluginError, VersionError


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("", (0, 1, 0)),
        ("0.2.0", (0, 2, 0)),
        ("1.1.0", (1, 1, 0)),
        ("1", (1, 0, 0)),
        ("1.2", (1, 2, 0)),
        ("0.0010.2", (0, 10, 2)),
        ("0.-42.0", (0, -42, 0)),
        ("+1.0.0", (1, 0, 0)),
    ],
)
def test_parse_version(text, parsed):
    assert version.parse_version(text) == parsed


@pytest.mark.parametrize(
    "text",
    [
        "asdfasdf",
        "asdf.",
        ".asdfas",
        "asdf.adsf.",
        "0.",
        "..",
        "1.2.3.4.5",
        "1.2.3.4",
        " 1.0.0",
        "1.0.0\n",
        "1_0.0.0",
        "\u0661.0.0",
        "1.0.f",
        "1.0.99999999999999999999",
        "1.0." + "9" * 5000,
        "--1.0.0",
        "v1.0.0",
    ],
)
def test_parse_version_refuses(text):
    with pytest.raises(VersionError):
        version.parse_version(text)


def test_parse_version_texts():
    with pytest.raises(VersionError, match=r'^invalid version "1.2.3.4": too many parts$'):
        version.parse_version("1.2.3.4")
    with pytest.raises(VersionError) as caught:
        version.parse_version("0.x")
    assert str(caught.value) == ('failed to convert minor version part "x": strconv.Atoi: parsing "x": invalid syntax')


def test_the_longest_part():
    assert version.parse_version("0" * 399 + "7.1.0") == (7, 1, 0)
    for part in ("0" * 401, "9" * 400, str(2**63), str(-(2**63) - 1)):
        with pytest.raises(VersionError, match=r"value out of range$"):
            version.parse_version(f"{part}.1.0")
    assert version.parse_version(f"{2**63 - 1}.{-(2**63)}.0") == (2**63 - 1, -(2**63), 0)


def test_comparisons():
    assert version.greater_than("1.1.0", "1.0.0")
    assert version.greater_than("0.10.0", "0.9.9")
    assert version.greater_than("1.1.1", "1.1.0")
    assert version.greater_than_or_equal_to("1.2.34", "1.2.14")
    assert not version.greater_than("1.0.0", "1.0")
    assert version.greater_than_or_equal_to("0.4.0", "0.4.0")
    assert not version.greater_than_or_equal_to("", "0.2.0")
    for first, second in (("x", "1.0.0"), ("1.0.0", "x")):
        with pytest.raises(VersionError):
            version.greater_than(first, second)
        with pytest.raises(VersionError):
            version.greater_than_or_equal_to(first, second)


def test_known_versions():
    assert version.CURRENT == "1.1.0"
    assert version.ALL[0] == "0.1.0" and version.ALL[-1] == version.CURRENT


def test_decode_config_version():
    assert version.decode_config_version(b'{"cniVersion":"4.3.2"}') == "4.3.2"
    assert version.decode_config_version(b'{"CNIVersion":"1.0.0"}') == "1.0.0"
    assert version.decode_config_version(b"{}") == "0.1.0"
    assert version.decode_config_version(b'{"cniVersion":""}') == "0.1.0"
    for data in (b"{{{", b'{"cniVersion":1}', b"[]"):
        with pytest.raises(JSONError, match=r"^decoding version from network config: "):
            version.decode_config_version(data)


def test_decode_plugin_info():
    data = b'{"cniVersion":"1.0.0","supportedVersions":["foo","bar"],"other":1}'
    assert version.decode_plugin_info(data) == ["foo", "bar"]
    assert version.decode_plugin_info(b'{"cniVersion":"0.2.0"}') == ["0.1.0", "0.2.0"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"{{{", "decoding version info: "),
        (b"", "decoding version info: unexpected end of JSON input"),
        (b"{}", "decoding version info: missing field cniVersion"),
        (b'{"supportedVersions":["1.0.0"]}', "decoding version info: missing field cniVersion"),
        (b'{"cniVersion":"1.0.0"}', "decoding version info: missing field supportedVersions"),
        (b'{"cniVersion":"1.0.0","supportedVersions":[]}', "decoding version info: missing field supportedVersions"),
        (b'{"cniVersion":"1.0.0","supportedVersions":[1]}', "decoding version info: json: cannot unmarshal number"),
    ],
)
def test_decode_plugin_info_refuses(data, text):
    with pytest.raises(JSONError) as caught:
        version.decode_plugin_info(data)
    assert str(caught.value).startswith(text)


def test_reconcile():
    version.reconcile("1.0.0", ["0.4.0", "1.0.0"])
    with pytest.raises(PluginError) as caught:
        version.reconcile("1.0", ["0.4.0", "1.0.0"])
    assert caught.value.code == 1
    assert caught.value.msg == "incompatible CNI versions"
    assert caught.value.details == 'config is "1.0", plugin supports ["0.4.0" "1.0.0"]'
