# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.binaries.types import named_plugins, types_of
from ansible_collections.podwire.cni.plugins.module_utils._host.networks.difference import (
    moves_addresses,
    readable_secret,
    same_json,
    shown_conflist,
)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"a": 1, "b": 2}', b'{"b":2,"a":1}', True),
        (b'{"a": 1500.0}', b'{"a": 1500}', True),
        (b'{"a": 1e3}', b'{"a": 1000}', True),
        (b'{"a": 1}', b'{"a": true}', False),
        (b'{"a": [1, 2]}', b'{"a": [2, 1]}', False),
        (b'{"a": "1"}', b'{"a": 1}', False),
        (b'{"a": 9007199254740993}', b'{"a": 9007199254740992}', False),
        (b"{", b"{}", False),
        (None, b"{}", False),
    ],
)
def test_what_means_the_same_to_libcni_is_the_same(one, other, same):
    assert same_json(one, other) is same


def bridge(**ipam):
    return ('{"plugins": [{"type": "bridge", "bridge": "b0", "ipam": {"type": "host-local"%s}}]}') % "".join(
        ', "%s": %s' % item for item in ipam.items()
    )


@pytest.mark.parametrize(
    ("one", "other", "moves"),
    [
        (bridge(subnet='"10.0.0.0/24"'), bridge(subnet='"10.0.1.0/24"'), True),
        (bridge(ranges='[[{"subnet": "x"}]]'), bridge(ranges='[[{"subnet":"x"}]]'), False),
        (bridge(ranges='[[{"subnet": "x"}]]'), bridge(ranges='[[{"subnet": "y"}]]'), True),
        (bridge(), bridge(rangeStart='"10.0.0.5"'), True),
        (bridge(), bridge(routes="[]"), False),
        (bridge(), bridge().replace("b0", "b1"), True),
        ('{"plugins": [{"type": "bridge"}]}', '{"plugins": [{"type": "bridge", "bridge": "cni0"}]}', False),
        ('{"plugins": [{"type": "bridge", "mtu": 1}]}', '{"plugins": [{"type": "bridge", "mtu": 2}]}', False),
        ('{"plugins": [{"type": "bridge"}]}', '{"plugins": [{"type": "ptp"}]}', True),
        (
            '{"plugins": [{"type": "x", "delegate": {"bridge": "a"}}]}',
            '{"plugins": [{"type": "x", "delegate": {"bridge": "b"}}]}',
            True,
        ),
        ("{", bridge(), False),
    ],
)
def test_a_change_of_bridge_subnet_or_ranges_is_told_apart(one, other, moves):
    assert moves_addresses(one.encode(), other.encode()) is moves
    assert moves_addresses(None, other.encode()) is False


def test_a_text_is_shown_laid_out_and_masked():
    assert (
        shown_conflist(b'{"name":"a","etcd_password":"hunter22"}')
        == '{\n  "name": "a",\n  "etcd_password": "********"\n}\n'
    )
    assert "hunter22" not in shown_conflist(b'{"etcd_password": "hunter22", oops')


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        ({"type": "bridge"}, [("/type", "bridge")]),
        ({"Type": "bridge", "IPAM": {"TYPE": "x"}}, [("/type", "bridge"), ("/ipam/type", "x")]),
        ({"type": "bridge", "ipam": {}}, [("/type", "bridge")]),
        ({"type": 5, "ipam": []}, []),
        (
            {"type": "x", "delegate": {"type": "y", "ipam": {"type": "z"}}},
            [("/type", "x"), ("/delegate/type", "y"), ("/delegate/ipam/type", "z")],
        ),
        (
            {"type": "flannel"},
            [("/type", "flannel"), ("/delegate/type", "bridge"), ("/delegate/ipam/type", "host-local")],
        ),
        (
            {"type": "flannel", "delegate": {"type": "ptp", "ipam": {"type": "dhcp"}}},
            [("/type", "flannel"), ("/delegate/type", "ptp"), ("/delegate/ipam/type", "dhcp")],
        ),
    ],
)
def test_everything_that_a_plugin_executes_is_named(plugin, expected):
    assert named_plugins(plugin) == expected


def test_types_are_listed_once():
    assert types_of([{"type": "b", "ipam": {"type": "a"}}, {"type": "b"}]) == ["a", "b"]


@pytest.mark.parametrize("mode, warned", [(0o644, True), (0o604, True), (0o640, False), (0o600, False)])
def test_a_secret_that_every_user_can_read_is_a_warning(mode, warned):
    secret = b'{"plugins": [{"type": "x", "env": [{"name": "DB_PASSWORD", "value": "hush"}]}]}'
    found = readable_secret(secret, mode, "/etc/cni/net.d/10-x.conflist")
    assert [entry["code"] for entry in found] == ["readable_secret"] * warned
    assert not warned or 'mode: "0600"' in found[0]["message"]
    assert readable_secret(b'{"plugins": [{"type": "x", "token_ttl": "30s"}]}', mode, "/x") == []
