# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""docs/howto/write-a-plugin.md, as a reader follows it."""

from __future__ import annotations

import re
import shutil

import pytest

from ansible_collections.podwire.cni.tests.host.host import COLLECTION, sh

PAGE = (COLLECTION / "docs" / "howto" / "write-a-plugin.md").read_text(encoding="utf-8")


def block(language):
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return found


def commands(number):
    """Return the commands of one console block, in order."""
    found = re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[number]
    return [line[2:] for line in found.splitlines() if line.startswith("# ")]


@pytest.fixture
def reader(work, generations):
    shutil.copytree(generations["new"], "/opt/cni/bin")
    (work / "wire.py").write_text(block("python"))
    sh(f"mkdir -p /etc/cni/net.d; cp -a {COLLECTION}/plugins {work}/")
    with open("/etc/cni/net.d/10-wire.conflist", "w", encoding="utf-8") as file:
        file.write(block("json"))
    yield work
    sh("ip netns delete blue; rm -rf /opt/cni /etc/cni /var/lib/cni")


def test_the_plugin_has_about_30_lines():
    lines = [line for line in block("python").splitlines() if line.strip()]
    assert len(lines) <= 32


def test_the_page(reader):
    printed = sh(f"cd {reader}; {'; '.join(commands(0))} 2>&1")
    assert printed.splitlines()[0] == "wire v1"
    done = sh(f"cd {reader}; {'; '.join(commands(1)[:-1])}")
    assert '"address": "10.84.0.2/24"' in done
    assert "1 received" in done
    assert sh("ip -brief link show type veth; find /var/lib/cni/networks -name '10.84.*'")
    again = "export PYTHONPATH=plugins/module_utils CNI_PATH=/opt/cni/bin; "
    sh("ip -n blue address delete 10.84.0.2/24 dev eth0")
    broken = sh(f"cd {reader}; {again} python3 -m libcni check wire /run/netns/blue 2>&1 || true")
    assert "eth0 has lost an address" in broken
    sh(f"cd {reader}; {again} {commands(1)[-1]}; {commands(1)[-1]}")
    assert not sh("ip -brief link show type veth; find /var/lib/cni/networks -name '10.84.*'")
