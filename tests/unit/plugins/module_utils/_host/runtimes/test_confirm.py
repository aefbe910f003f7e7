# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.confdir import scan_conf_dir
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.hostview import HostView
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import cri, discover
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.confirm import confirm
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.cri import CriStatus
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.effective import Effective
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes.profiles import Runtime

NETWORK = '{"cniVersion": "1.0.0", "name": "fleet", "plugins": [{"type": "loopback"}]}'


class Host:
    """A host with one running runtime, whose answers are given one after another; the last one is repeated."""

    def __init__(self, conf_dir, state):
        self.conf_dir = conf_dir
        self.state = state
        self.runtime = Runtime("containerd-1.7", "1.7.24", "a process", str(conf_dir), ["/opt/cni/bin"])
        self.runtime.pid, self.runtime.address = 7, "/run/containerd.sock"
        self.answers = []
        self.asked = 0

    def status(self, address):
        assert address == "/run/containerd.sock"
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, Exception):
            raise answer
        return answer

    def confirm(self, **more):
        files = scan_conf_dir(str(self.conf_dir))
        effective = Effective(None, str(self.conf_dir), ["/opt/cni/bin"], files, HostView(Manifest(str(self.state))))
        return confirm(effective, deadline=0.2, **more)


@pytest.fixture
def host(tmp_path, monkeypatch):
    (tmp_path / "net.d").mkdir()
    (tmp_path / "net.d" / "10-fleet.conflist").write_text(NETWORK)
    made = Host(tmp_path / "net.d", tmp_path / "state")
    monkeypatch.setattr(cri, "cri_status", made.status)
    monkeypatch.setattr(discover, "runtimes_on_host", lambda conf_dir: [made.runtime])
    return made


def test_what_is_loaded_as_foretold_is_confirmed(host):
    host.answers = [CriStatus(True, "", ["fleet"])]
    assert host.confirm() == (True, [])
    assert host.asked == 1


def test_a_runtime_gets_some_time(host):
    host.answers = [CriStatus(False, "cni plugin not initialized", []), CriStatus(True, "", ["fleet"])]
    assert host.confirm() == (True, [])
    assert host.asked == 2


def test_what_is_not_loaded_is_told(host):
    host.answers = [CriStatus(True, "", ["other"])]
    told = ["containerd-1.7 has loaded other instead of fleet; check its log, or restart it"]
    assert host.confirm() == (False, told)
    host.answers = [CriStatus(False, "no network config found", [])]
    told = ["containerd-1.7 has loaded none (no network config found) instead of fleet; check its log, or restart it"]
    assert host.confirm() == (False, told)


def test_an_empty_directory_is_confirmed_by_an_empty_answer(host):
    (host.conf_dir / "10-fleet.conflist").unlink()
    host.answers = [CriStatus(False, "no network config found", [])]
    assert host.confirm() == (True, [])


def test_who_names_no_networks_is_asked_whether_it_has_any(host):
    host.answers = [CriStatus(True, "", None)]
    assert host.confirm() == (True, [])
    host.answers = [CriStatus(False, "no CNI configuration", None)]
    assert host.confirm()[0] is False


def test_who_does_not_answer_is_told(host):
    host.answers = [HostError("refused", code="not_answered")]
    assert host.confirm() == (False, ["containerd-1.7 cannot be asked which networks it has loaded: refused"])


def test_nobody_to_ask(host):
    assert host.confirm(restarting=["containerd-1.7"]) == (None, [])
    host.runtime.address = ""
    assert host.confirm() == (None, [])
    host.runtime.address, host.runtime.pid = "/run/containerd.sock", 0
    assert host.confirm() == (None, [])
    host.runtime.pid = 7
    host.runtime.set_conf("/elsewhere")
    assert host.confirm() == (None, [])
    host.runtime.set_conf(str(host.conf_dir))
    host.runtime.reads = False
    assert host.confirm() == (None, [])
    assert host.asked == 0
