# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Modules are run as a whole here, from their arguments to what they print and log."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import syslog

import pytest
from ansible.module_utils import basic
from ansible.module_utils.common import parameters, warnings
from ansible.module_utils.testing import patch_module_args

from ansible_collections.podwire.cni.plugins.module_utils import _module
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments import verbs
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import Networks
from ansible_collections.podwire.cni.plugins.module_utils._host.garbage import verb as gc_verb
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import STATE_DIR
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.invoke import Executor


@pytest.fixture(autouse=True)
def _private():
    assert os.uname().nodename == "podwire-private", "these tests change the host: run them with tests/private.sh"
    yield
    # Else the status of the last module, which ran in this process, becomes that of the tests.
    _module._answered.clear()


class Talkative(Executor):
    """Plugins that fail and say all that they were given, after ``saying``."""

    saying = ""

    def exec_plugin(self, path, stdin, env, timeout=None):
        given = sorted((key, text) for key, text in env.items() if key.startswith("CNI_"))
        said = "%s%s %s" % (self.saying, stdin.decode(), given)
        raise PluginError(999, said, details=said, plugin=os.path.basename(path), stderr=said + "\n" + self.saying)


class Run:
    """What one run of a module left: its ``result`` and all that it ``printed`` and ``logged``."""

    def __init__(self, result, printed, logged):
        self.result = result
        self.printed = printed
        self.logged = logged


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Return a function that runs a module on empty directories; there is a namespace ``secrets``."""
    logged = []
    # Since ansible-core 2.22, a module of its own writes the log.
    for writer in filter(None, (basic, sys.modules.get("ansible.module_utils._internal._logging"))):
        monkeypatch.setattr(writer, "has_journal", False)
    monkeypatch.setattr(syslog, "syslog", lambda _priority, message: logged.append(message))
    monkeypatch.setattr(Networks, "test_plugins", lambda self, config: None)
    for module, name in ((verbs, "DeadNetnsExecutor"), (gc_verb, "SafeExecutor")):
        monkeypatch.setattr(module, name, Talkative)
    kept = os.path.exists(STATE_DIR)
    for folder in ("net.d", "bin", "cache"):
        (tmp_path / folder).mkdir()
    (tmp_path / "bin" / "bridge").touch(0o755)
    common = {
        "conf_dir": str(tmp_path / "net.d"),
        "bin_dirs": [str(tmp_path / "bin")],
        "cache_dir": str(tmp_path / "cache"),
    }

    def start(name, check_mode=False, shared=True, **arguments):
        module = importlib.import_module(f"ansible_collections.podwire.cni.plugins.modules.{name}")
        given = dict(
            common if shared else {},
            **arguments,
            _ansible_check_mode=check_mode,
            _ansible_diff=True,
            _ansible_no_log=False,
        )
        if "inject_invocation" in parameters.PASS_VARS:
            # As the controller does when it is verbose; ansible-core before 2.21 always returns the invocation.
            given["_ansible_inject_invocation"] = True
        warnings._global_warnings.clear()
        logged.clear()
        with patch_module_args(given), pytest.raises(SystemExit):
            module.main()
        printed = capsys.readouterr()
        return Run(json.loads(printed.out), printed.out + printed.err, list(logged))

    start.plugins = Talkative
    start.conf_dir = tmp_path / "net.d"
    start.cache_dir = tmp_path / "cache"
    subprocess.run(["ip", "netns", "add", "secrets"], check=True)
    yield start
    subprocess.run(["ip", "netns", "delete", "secrets"], check=True)
    if not kept:
        shutil.rmtree(STATE_DIR, ignore_errors=True)
