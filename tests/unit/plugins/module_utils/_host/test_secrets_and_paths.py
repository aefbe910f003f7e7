# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.paths import absolute, file_name
from ansible_collections.podwire.cni.plugins.module_utils._host.secrets import (
    MASK,
    mask,
    mask_text,
    published,
    scrub,
    secrets_of,
)


@pytest.mark.parametrize(
    "key", ["token", "k8s_auth_token", "clientSecret", "PASSWORD", "etcd_key", "apiKey", "client-key-data", "key"]
)
def test_values_of_secret_keys_are_masked_at_any_depth(key):
    assert mask({"plugins": [{"x": {key: "hush-hush"}}]}) == {"plugins": [{"x": {key: MASK}}]}


@pytest.mark.parametrize(
    "key, value",
    [
        ("etcd_key_file", "/etc/key"),
        ("kubeconfig", "/etc/cni/net.d/x-kubeconfig"),
        ("kubeconfig", "x-kubeconfig"),
        ("keyboard", "x"),
        ("hotkeys", 3),
        ("token", None),
        ("secret", ""),
        ("use_token", True),
    ],
)
def test_what_gives_nothing_away_is_shown(key, value):
    assert mask({key: value}) == {key: value}


def test_an_inlined_kubeconfig_is_masked():
    inlined = {"kubeconfig": {"users": []}, "KubeConfig": "apiVersion: v1\nusers: []", "kubeconfig_b64": "YXBp" * 20}
    assert mask(inlined) == dict.fromkeys(inlined, MASK)


def test_the_given_value_is_not_altered():
    given = {"token": "hush-hush"}
    mask(given)
    assert given == {"token": "hush-hush"}


def test_what_a_plugin_prints_is_scrubbed_of_what_it_was_given():
    known = secrets_of({"a": [{"password": "hush-hush", "secrets": {"x": "deep-one"}, "token": "abc"}]})
    assert scrub("bad password hush-hush, deep-one; abc", known) == "bad password %s, %s; abc" % (MASK, MASK)


@pytest.mark.parametrize(
    "text, masked",
    [
        ('{"token": "abc", "mtu": 1,}', '{"token": "%s", "mtu": 1,}' % MASK),
        ("password: abc\nname: x", "password: %s\nname: x" % MASK),
        ("{'apiKey': 'abc'}", "{'apiKey': '%s'}" % MASK),
        # Objects and lists, which are often on several lines.
        ('{"auth": {"api_token": "abc"},,', '{"auth": {"api_token": "%s"},,' % MASK),
        ('{"secrets": ["abc", "def"], "mtu": 1,}', '{"secrets": %s, "mtu": 1,}' % MASK),
        ('{"secret" : {"a": {"b": "}"},\n "c": ["d\\"]"]}, "mtu": 1,}', '{"secret" : %s, "mtu": 1,}' % MASK),
        ('{"credentials": {"user": "abc", "x": ["y"], "mtu": 1', '{"credentials": %s' % MASK),
        ('{"key": {"abc": 1}, "keys": ["abc"],,', '{"key": {"abc": 1}, "keys": %s,,' % MASK),
        ("password: []abc\nmtu: {}", "password: %s]abc\nmtu: {}" % MASK),
        ('{"passwords": [], "tokens": {},,', '{"passwords": [], "tokens": {},,'),
    ],
)
def test_a_text_that_does_not_parse_is_masked_too(text, masked):
    assert mask_text(text) == masked


def test_secrets_in_objects_of_a_text_that_does_not_parse_are_known():
    known = secrets_of('{"credentials": {"user": "hush-hush", "parts": ["deep-one", 12345]},,')
    assert scrub("user hush-hush, deep-one", known) == "user %s, %s" % (MASK, MASK)


def test_a_text_of_many_open_brackets_is_masked_in_time_linear_to_its_length():
    assert mask_text('{"a": {"token": {' * 20000) == '{"a": {"token": ' + MASK
    assert mask_text('{"a": [' * 20000) == '{"a": [' * 20000


@pytest.mark.parametrize("text", ['{"a":  1}', '{\n  "name": "é",\n  "mtu": 1500.0\n}\n', '[ {"a": "b"}, null ]\n'])
def test_json_without_secrets_keeps_its_layout(text):
    assert published({"diff": {"before": text}})["diff"]["before"] == text


def test_json_with_a_secret_keeps_its_lines():
    shown = published('{\n "token": "s3cret",\n "name": "é"\n}\n')
    assert shown == '{\n  "token": "%s",\n  "name": "é"\n}\n' % MASK


def test_a_key_that_occurs_twice_hides_no_secret():
    assert "s3cret" not in published('{"a": {"token": "s3cret"}, "a": 1}')
    assert "s3cret" not in published('{"token": "s3cret", "token": null}')


@pytest.mark.parametrize("path", ["etc/cni", "", "~/x", "/", "//", "/etc/../x", "/etc/./x", "/a\0b"])
def test_paths_that_are_not_absolute_and_clean_are_refused(path):
    with pytest.raises(HostError) as caught:
        absolute(path, "conf_dir")
    assert caught.value.msg.startswith("conf_dir: ")


def test_slashes_are_normalised():
    assert absolute("/etc//cni/net.d/", "conf_dir") == "/etc/cni/net.d"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0"])
def test_a_file_name_is_one_component(name):
    with pytest.raises(HostError):
        file_name(name, "networks[0].file")


def test_the_longest_file_name():
    assert file_name("ä" * 100, "x") == "ä" * 100
    with pytest.raises(HostError, match="is longer than 200 bytes") as caught:
        file_name("ä" * 100 + "x", "x")
    assert caught.value.code == "bad_file_name"
