# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which keys and texts hold a secret."""

from __future__ import annotations

import json

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.secrets import (
    MASK,
    is_secret,
    mask,
    mask_text,
    secrets_of,
)

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
