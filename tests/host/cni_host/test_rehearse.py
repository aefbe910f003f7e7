# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""New plugins are tried with all networks in a private copy of the host before any of them goes live."""

from __future__ import annotations

import json
import shutil

import pytest

from ansible_collections.podwire.cni.tests.host.cni_host.conftest import BIN_DIR, network
from ansible_collections.podwire.cni.tests.host.host import sh

# A plugin that answers VERSION, and whose ADD does what comes after it.
PLUGIN = """\
#!/bin/sh
case "$CNI_COMMAND" in
  VERSION) printf '{"cniVersion": "1.0.0", "supportedVersions": ["0.3.1", "0.4.0", "1.0.0", "1.1.0"]}'; exit 0 ;;
esac
"""
BROKEN = PLUGIN + """printf '{"cniVersion": "1.0.0", "code": 999, "msg": "this release is broken"}'; exit 1\n"""


@pytest.fixture
def release(work, source):
    """Return a function that makes a directory with the plugins of the source, and others in place of some."""

    def make(**plugins):
        folder = work / "release"
        shutil.copytree(source, folder)
        for name, text in plugins.items():
            (folder / name).unlink()
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        return str(folder)

    return make


def plugins_there():
    """Return what the directory of plugins has, with hidden files; staged ones were in it for a moment."""
    return sh("cd /opt/cni/bin; find -type f -exec sha256sum {} + -printf '%p %m %i %T@\\n' | sort; ip netns list")


def upgrade(host, desired, src, **more):
    """Install the plugins of *src*; return the result, and whether the host has changed."""
    before = plugins_there()
    plugins = dict(desired["plugins"], src=src, **more.pop("plugins", {}))
    result = host.attempt("cni_host", plugins=plugins, rehearse=True, **more)
    assert "Traceback" not in json.dumps(result)
    return result, plugins_there() != before


def test_a_release_that_breaks_a_network_is_never_live(host, desired, release):
    host.run("cni_host", **desired)
    result, changed = upgrade(host, desired, release(bridge=BROKEN))
    assert result["failed"] and not changed and not result["changed"]
    assert result["code"] == "rehearsal_failed"
    for text in ("pwhapps", "pwhdata", "this release is broken", "nothing was installed"):
        assert text in result["msg"]
    assert {step["state"] for step in result["plan"]} <= {"failed", "left_out"}


def test_a_release_that_works_goes_live(host, desired, release):
    """A network that fails with the old plugins, too, does not count."""
    host.run("cni_host", **desired)
    broken = network("pwhwrong", 43)
    conflist = json.loads(broken["content"])
    conflist["plugins"][0]["ipam"]["ranges"] = [[{"subnet": "10.43.0.0/33"}]]
    sh(f"cat > /etc/cni/net.d/20-pwhwrong.conflist <<'END'\n{json.dumps(conflist)}\nEND")
    # Of another one, nothing is known.
    unknown = {"cniVersion": "1.0.0", "name": "pwhdhcp", "plugins": [{"type": "bridge", "ipam": {"type": "dhcp"}}]}
    sh(f"cat > /etc/cni/net.d/30-pwhdhcp.conflist <<'END'\n{json.dumps(unknown)}\nEND")
    folder = release()
    sh(f"printf more >> {folder}/tuning; printf more >> {folder}/bridge")
    result, changed = upgrade(host, desired, folder)
    assert not result.get("failed"), result["msg"]
    assert changed and result["changed"]
    assert (BIN_DIR / "bridge").read_bytes().endswith(b"more")
    warned = [text for text in result["warnings"] if "[not_rehearsed]" in text]
    assert len(warned) == 1 and "pwhdhcp" in warned[0] and "dhcp" in warned[0]


def test_force_installs_without_a_rehearsal(host, desired, release):
    host.run("cni_host", **desired)
    result, changed = upgrade(host, desired, release(bridge=BROKEN), plugins={"force": True})
    assert not result.get("failed") and changed


def test_check_mode_rehearses_nothing(host, desired, release):
    host.run("cni_host", **desired)
    result, changed = upgrade(host, desired, release(bridge=BROKEN), check_mode=True)
    assert not result.get("failed") and result["changed"] and not changed
