# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

pytestmark = pytest.mark.parametrize("generation", ["new"], indirect=True)

WEB = {"network": "pwatwo", "container_id": "web", "netns": "pwa-web"}
DB = {"network": "pwatwo", "container_id": "db", "netns": "pwa-db"}


@pytest.mark.parametrize(
    ("attachments", "code", "words"),
    [
        ([WEB, {**DB, "container_id": "../x"}], "bad_id", ["attachments[1].container_id", "../x", "allowed"]),
        (
            [{"network": "pwatwo", "container_id": "web"}],
            "bad_netns",
            ["attachments[0]: netns is required"],
        ),
        ([WEB, {**WEB, "network": "pwamap"}], "duplicate_ifname", ["attachments[1]", "ifname"]),
        (
            [
                DB,
                {
                    "network": "pwamap",
                    "container_id": "web",
                    "netns": "pwa-web",
                    "capability_args": {
                        "portMappings": [{"hostPort": "18061", "containerPort": 80, "protocol": "tcp"}]
                    },
                },
            ],
            "bad_capability_args",
            ["attachments[1].capability_args.portMappings[0].hostPort", "write 18061 without quotes"],
        ),
        (
            [{**WEB, "netns": "/proc/1/ns/net"}],
            "host_netns",
            ["pwatwo/web/eth0", "/proc/1/ns/net", "the host's own network namespace"],
        ),
    ],
)
def test_a_bad_request_is_refused(host, state, attachments, code, words):
    host.refuse("cni_attach", state, code, words, attachments=attachments)


@pytest.fixture
def on_bad(host, work):
    """Return a function that writes the conflist of the network bad, and a host whose only network it is."""
    (work / "bad.d").mkdir()

    def write(content):
        (work / "bad.d" / "bad.conflist").write_text(content)
        return host.with_defaults(conf_dir=str(work / "bad.d"))

    return write


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (
            '{"cniVersion": "1.0.0",\n  "name": "bad", "plugins": [}',
            "bad_config",
            ["bad.conflist", "line 2"],
        ),
        (
            '{"cniVersion": "1.0.0", "name": "bad", "plugins": [{"type": "../../bin/sh"}]}',
            "bad_config",
            ["/plugins/0/type", "../../bin/sh"],
        ),
        (
            '{"cniVersion": "9.9.0", "name": "bad", "plugins": [{"type": "bridge"}]}',
            "unsupported_by_plugin",
            ["bridge", "9.9.0"],
        ),
    ],
)
def test_a_bad_network_is_refused(on_bad, state, content, code, words):
    on_bad(content).refuse("cni_attach", state, code, words, attachments=[{**WEB, "network": "bad"}])


def test_a_network_with_a_missing_plugin_is_refused_only_by_a_run(on_bad, state):
    host = on_bad('{"cniVersion": "1.0.0", "name": "bad", "plugins": [{"type": "bridge"}, {"type": "nosuch"}]}')
    before = state()
    refused = host.fail("cni_attach", attachments=[{**WEB, "network": "bad"}])
    assert refused["code"] == "missing_plugin"
    assert "nosuch" in refused["msg"]
    assert "bin_dirs" in refused["msg"]
    assert not refused["changed"]
    (row,) = host.run("cni_attach", attachments=[{**WEB, "network": "bad"}], check_mode=True)["attachments"]
    assert [warning["code"] for warning in row["warnings"]] == ["missing_plugin"]
    assert state() == before


@pytest.mark.parametrize(
    ("attachment", "options", "code"),
    [
        ({"network": "nosuch"}, {}, "missing_network"),
        ({}, {"conf_dir": "/nosuch/net.d"}, "missing_conf_dir"),
        ({"netns": "pwa-nosuch"}, {}, "missing_netns"),
        ({}, {"bin_dirs": ["/nosuch/bin"]}, "missing_plugin"),
    ],
)
def test_a_check_warns_of_what_is_missing_and_a_run_fails(host, attach, attachment, options, code):
    (row,) = attach({**WEB, **attachment}, **options, check_mode=True)["attachments"]
    assert row["action"] == "added"
    assert [warning["code"] for warning in row["warnings"]] == [code]
    failing = host.fail("cni_attach", attachments=[{**WEB, **attachment}], **options)
    assert failing["code"] == code
    assert not failing["changed"]
