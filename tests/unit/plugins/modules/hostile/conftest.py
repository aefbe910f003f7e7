# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import importlib
import io
import json
import os
import sys
import tarfile

import pytest
from ansible.module_utils import basic

from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import digest_of
from ansible_collections.podwire.cni.plugins.module_utils._host.trust import host_machine
from ansible_collections.podwire.cni.tests.unit.plugins.modules.hostile import files


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    # Modules add to it.
    monkeypatch.setenv("PATH", os.environ["PATH"])
    limit = sys.getrecursionlimit()
    files.clear()
    yield
    files.clear()
    sys.setrecursionlimit(limit)


@pytest.fixture
def run_module(monkeypatch, capsys):
    """Run a module as Ansible does, but in this process, and return what it printed."""

    def run(name, arguments, check_mode=False):
        given = {**arguments, "_ansible_check_mode": check_mode, "_ansible_diff": True}
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": given}).encode())
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
        module = importlib.import_module(f"ansible_collections.podwire.cni.plugins.modules.{name}")
        with pytest.raises(SystemExit):
            module.main()
        return json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def plugin(tmp_path):
    """Return the arguments that install a plugin, as the action plugin hands them over."""

    def arguments(bin_dir):
        with open("/bin/true", "rb") as stream:
            content = stream.read()
        digest = digest_of(io.BytesIO(content))
        with tarfile.open(tmp_path / "sent.tar", "w") as tar:
            info = tarfile.TarInfo("bridge")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        told = {"where": "/x", "only_ask": False, "last": True, "urls": {}, "files": {"bridge": digest}}
        told.update(machines={"bridge": host_machine()}, bundle=str(tmp_path / "sent.tar"), shipped=["bridge"])
        return {"version": "1.9.1", "bin_dir": bin_dir, "_source": told}

    return arguments
