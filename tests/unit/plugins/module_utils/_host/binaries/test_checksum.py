# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import io

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.checksum import digests, parse_checksum, verify
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

HEX256 = hashlib.sha256(b"x").hexdigest()
HEX512 = hashlib.sha512(b"x").hexdigest()


@pytest.mark.parametrize(
    "text, wanted", [("sha256:" + HEX256, ("sha256", HEX256)), (" SHA512:%s\n" % HEX512.upper(), ("sha512", HEX512))]
)
def test_a_checksum_is_split(text, wanted):
    assert parse_checksum(text) == wanted


@pytest.mark.parametrize(
    "text",
    ["", HEX256, "md5:" + "0" * 32, "sha256:" + HEX256[1:], "sha256:" + HEX512, "sha512:" + "g" * 128, "sha256:"],
)
def test_a_wrong_checksum_is_refused(text):
    with fails_with("bad_checksum"):
        parse_checksum(text)


def test_digests_are_of_the_whole_stream_which_is_left_at_its_beginning():
    stream = io.BytesIO(b"x")
    stream.read()
    assert digests(stream) == {"sha256": HEX256, "sha512": HEX512}
    assert stream.read() == b"x"


def test_another_checksum_names_both():
    verify({"sha512": HEX512}, ("sha512", HEX512), "a.tgz")
    with fails_with("checksum_mismatch") as caught:
        verify({"sha256": HEX256}, ("sha256", "0" * 64), "a.tgz")
    assert HEX256 in caught.value.msg and "0" * 64 in caught.value.msg and "a.tgz" in caught.value.msg
