# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which keys and texts hold a secret."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.paths import absolute, file_name
from ansible_collections.podwire.cni.plugins.module_utils._host.secrets import (
    MASK,
    is_secret,
    mask,
    mask_text,
    published,
    scrub,
    secrets_of,
)
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

SECRETS = """
password dbPassword PGPASSWORD passwd pass smtp_pass pwd psk wpa-psk passphrase secret clientSecret secret_id token
k8s_auth_token authtoken tokenValue bearer authorization Proxy-Authorization credentials apikey API_KEY x-api-key
client_key_data client-key-data private_key_pem etcd_key aws_secret_access_key session_cookie
"""
OTHERS = """
passthrough bypass compass passive pass_through tokenizer token_ttl tokenFile token_url max_tokens passwordFile
password_policy secretName secretRef public_key publicKey primary_key authorized_keys keyboard hotkeys monkey key_id
key_file keyUsage author auth_type pinned spin certificate-authority-data ssh_host
"""
SECRET, OPEN = SECRETS.split(), OTHERS.split()


def test_the_table_has_thirty_keys_of_each_kind():
    assert len(set(SECRET)) == len(set(OPEN)) == 30


@pytest.mark.parametrize("key", SECRET)
def test_a_secret_key_hides_its_value(key):
    assert is_secret(key, "hush-hush")
    assert mask({key: "hush-hush"}) == {key: MASK}
    assert "hush-hush" not in mask_text('{"%s": "hush-hush", ' % key)


@pytest.mark.parametrize("key", OPEN)
def test_an_open_key_shows_its_value(key):
    assert not is_secret(key, "hush-hush")
    assert mask({key: "hush-hush"}) == {key: "hush-hush"}
    assert mask_text('{"%s": "hush-hush", ' % key) == '{"%s": "hush-hush", ' % key


TEXTS = [
    "https://user:%s@etcd.example:2379/v2",
    "redis://:%s@cache.example",
    "--token=%s",
    "serve --token %s --verbose",
    "-api-key=%s",
    "DB_PASSWORD=%s",
    "https://api.example/?user=a&access_token=%s&page=2",
    "K8S_POD_NAME=web;TOKEN=%s",
    "Authorization: Bearer %s",
    "X-Api-Key: %s",
    '{"env": [{"name": "DB_PASSWORD", "value": "%s"}]}',
    '{"env": [{"name": "DB_PASSWORD", "value": "%s"}',
    '["--token", "%s"',
    "-----BEGIN EC PRIVATE KEY-----\n%s\n-----END EC PRIVATE KEY-----\n",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("secret", ["hush-4711", "a+b/c==", "p%40ss!"])
def test_a_secret_is_masked_in_texts_of_any_key(text, secret):
    value = {"anything": [text.replace("%s", secret)]}
    assert secret not in json.dumps(mask(value))
    assert secret not in mask_text(text.replace("%s", secret))
    assert any(secret in found for found in secrets_of(value))


@pytest.mark.parametrize(
    "text",
    [
        "http://etcd.example:2379/v2/user@home",
        "cannot attach demo/web/eth0: no key of that name",
        "--token-ttl 30s --keyboard us",
        "aa:bb:cc:dd:ee:ff",
        "fd00::1/64",
        "Basic authentication is off",
        "K8S_POD_NAME=web;IgnoreUnknown=1",
        "10.88.0.0/16",
    ],
)
def test_texts_without_a_secret_stay(text):
    assert mask({"anything": text}) == {"anything": text}
    assert secrets_of(text) == set()


def test_values_are_judged_by_the_name_beside_them():
    env = [
        {"name": "DB_PASSWORD", "value": "hush"},
        {"Name": "PWD", "Value": "hush"},
        {"key": "API_TOKEN", "value": 47},
    ]
    assert mask(env) == [dict(entry, **{key: MASK}) for entry, key in zip(env, ("value", "Value", "value"))]
    assert mask([{"name": "MODE", "value": "fast"}]) == [{"name": "MODE", "value": "fast"}]
    assert secrets_of(env) == {"hush"}


def test_the_argument_after_a_secret_option_is_masked():
    assert mask(["serve", "--token", "hush", "--password", "--port", "80"]) == [
        "serve",
        "--token",
        MASK,
        "--password",
        "--port",
        "80",
    ]


@pytest.mark.parametrize("value", [4711, {"id": 7}, "/etc/cni/net.d/key.pem"])
def test_numbers_objects_and_paths_are_no_keys(value):
    assert mask({"key": value}) == {"key": value}


def test_deep_nesting_ends_the_search_not_the_module():
    deep = "hush"
    for _level in range(5000):
        deep = {"a": [deep]}
    assert "hush" not in json.dumps(mask(deep))


@pytest.mark.parametrize("part", ["a-", "--a ", '"a":', "eyJ-", "://a:", "name:a,value:", "Bearer ", "-----BEGIN "])
def test_the_work_grows_with_the_text_and_not_with_its_square(part):
    # A square of this would take an hour.
    text = part * (1 << 16)
    assert mask_text(text) and mask(text)


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
    with fails_with("bad_file_name", "is longer than 200 bytes"):
        file_name("ä" * 100 + "x", "x")
