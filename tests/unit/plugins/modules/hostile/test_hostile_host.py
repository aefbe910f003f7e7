# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever the files of a host hold, each module ends with a result, or with a sentence and a code."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import traceback

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host import commands
from ansible_collections.podwire.cni.tests.tools import sample
from ansible_collections.podwire.cni.tests.unit.plugins.modules.hostile import files

SHA = "1" * 64
TOLD = {"where": "/x", "only_ask": False, "last": False, "urls": {}, "files": {"bridge": SHA}, "machines": {}}
NETWORK = {"name": "apps", "content": json.dumps(files.CONFLIST)}
ATTACHMENT = {"network": "apps", "container_id": "one", "netns": "/run/netns/web"}
CALLS = [
    ("cni_info", {}),
    ("cni_conf", {"networks": [NETWORK], "exclusive": True, "ensure_effective": "apps"}),
    ("cni_conf", {"networks": [{"name": "apps", "state": "absent"}]}),
    ("cni_conf", {"networks": [{"name": "apps", "state": "restored"}], "force": True}),
    ("cni_conf", {"networks": [NETWORK], "runtime": ["containerd", "crio"], "configure": {"max_conf_num": 1}}),
    ("cni_plugins", {"version": "1.9.1", "_source": TOLD}),
    ("cni_plugins", {"state": "absent", "plugins": ["bridge", "portmap"]}),
    ("cni_plugins", {"state": "restored"}),
    ("cni_netns", {"names": ["web"]}),
    ("cni_netns", {"names": ["web"], "state": "absent"}),
    ("cni_attach", {"attachments": [ATTACHMENT, {**ATTACHMENT, "container_id": "two"}], "on_drift": "repair"}),
    ("cni_attach", {"attachments": [{**ATTACHMENT, "state": "absent"}], "force": True}),
    ("cni_smoke", {"ping": False}),
    ("cni_gc", {"scope": ["attachments", "leases", "rules", "cache", "links"], "min_age": "0"}),
    ("cni_gc", {"keep_from": ["netns"], "allow_empty": True, "min_age": "0"}),
]
COUNT = sample.number("HOSTILE", 4, 2)


class TooSlowError(Exception):
    """A module has not ended."""


@pytest.fixture(autouse=True)
def programs(monkeypatch):
    # What the modules wait for: of daemons that nobody has started.
    monkeypatch.setattr(time, "sleep", lambda seconds, sleep=time.sleep: sleep(min(seconds, 0.02)))

    def too_slow(*_arguments):
        raise TooSlowError

    files.install_programs()
    monkeypatch.setattr(commands, "DIRECTORIES", (files.PROGRAMS, *commands.DIRECTORIES))
    before = signal.signal(signal.SIGALRM, too_slow)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    shutil.rmtree(files.PROGRAMS)


@pytest.fixture
def daemons(tmp_path):
    """Processes with the names of runtimes, whose command lines are no text."""
    (tmp_path / "agent").write_text("read")
    lines = {
        "nomad": [b"-config", b"\xff\x1b[31m", b"-cni-path=\xff:..", b"-cni-config-dir", b"/\xed\xa0\x80"],
        "containerd": [b"--config", b"\xff", b"--address=/run/\n\xff", b"--root", b"/dev/zero"],
        "crio": [b"--config=/dev/zero", b"--config-dir", b"/proc/self/\xff", b"--cni-plugin-dir=\x1b[31m"],
    }
    with contextlib.ExitStack() as stack:
        for name, line in lines.items():
            shutil.copy("/bin/bash", tmp_path / name)
            program = os.fsencode(str(tmp_path / name))
            process = stack.enter_context(subprocess.Popen([program, b"agent", *line], stdin=-1, cwd=str(tmp_path)))
            stack.callback(process.kill)
        yield


def test_command_lines_of_daemons_that_are_no_text_end_in_a_result_or_a_sentence_with_a_code(daemons, run_module):
    files.Hostile(0).damage()
    for name, arguments in CALLS:
        result = run_module(name, arguments, check_mode=True)
        json.dumps(result, ensure_ascii=False).encode("utf-8")
        assert not result.get("failed") or (result["msg"] and result["code"]), result


@pytest.mark.parametrize("seed", range(COUNT))
def test_hostile_bytes_in_any_file_of_a_host_end_in_a_result_or_a_sentence_with_a_code(seed, run_module):
    damaged = files.Hostile(seed)
    failed = []
    for name, arguments in CALLS:
        for check_mode in (True, False):
            damaged.__init__(seed)
            damaged.damage()
            try:
                signal.alarm(60)
                limit = {} if name == "cni_info" else {"lock_timeout": 1}
                result = run_module(name, {**arguments, **limit}, check_mode)
                signal.alarm(0)
                json.dumps(result, ensure_ascii=False).encode("utf-8")
                if result.get("failed"):
                    assert result["msg"] and result["code"], result
                    assert "Traceback" not in result["msg"] and "exception" not in result, result
            except Exception as error:  # noqa: BLE001  # all of them are told together
                place = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{place.filename}:{place.lineno}"
                failed.append(f"{name} check_mode={check_mode} {sorted(arguments)}: {error!r:.300} at {where}")
    if failed:
        pytest.fail("\n".join([*failed, "with", *damaged.log]))


CONF = {"networks": [{"name": "apps", "content": json.dumps(files.CONFLIST)}], "validate": ["syntax"]}
PATH = "/etc/cni/net.d/10-apps.conflist"
FILES = files.sound()


@pytest.fixture
def mounted():
    """Mount a small file system at a path, until the test ends; called with options it is mounted again with them."""
    with contextlib.ExitStack() as stack:

        def mount(path, options, again=False):
            os.makedirs(path, exist_ok=True)
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", options + (",remount" if again else ""), "none", path], check=True
            )
            if not again:
                stack.callback(subprocess.run, ["umount", "-l", path], check=True)

        yield mount


def fill(folder):
    """Leave no room for a single byte."""
    with open(os.path.join(folder, "filler"), "wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(b"x" * 4096)


def test_a_full_run_is_said_before_anything_is_done(mounted, run_module):
    mounted("/run/podwire-cni", "size=16k,mode=0700")
    fill("/run/podwire-cni")
    result = run_module("cni_conf", CONF)
    assert result["failed"] and result["code"] == "lock_unusable" and "No space left" in result["msg"]
    assert not os.path.exists(PATH)
    assert run_module("cni_conf", CONF, check_mode=True)["changed"]


def test_a_run_that_fills_up_meanwhile_does_not_lose_the_result_of_finished_work(mounted, run_module, monkeypatch):
    from ansible_collections.podwire.cni.plugins.module_utils._host.lock import Lock

    def note(self, holder, real=Lock._note):
        if not holder:
            raise OSError(28, "No space left on device")
        real(self, holder)

    monkeypatch.setattr(Lock, "_note", note)
    result = run_module("cni_conf", CONF)
    assert result["changed"] and not result.get("failed") and os.path.exists(PATH)
    # The note of a holder stays, and says that others have to plan again.
    monkeypatch.undo()
    assert not run_module("cni_conf", CONF)["changed"]


def test_the_cause_is_told_and_not_that_of_the_clean_up_where_opt_is_read_only(mounted, run_module, plugin):
    mounted("/opt/cni/bin", "mode=0755")
    arguments = plugin("/opt/cni/bin")
    mounted("/opt/cni/bin", "ro", again=True)
    for check_mode in (True, False, False, True):
        result = run_module("cni_plugins", arguments, check_mode=check_mode)
        if check_mode:
            assert result["changed"], result
        else:
            assert (result["failed"], result["code"]) == (True, "write_failed"), result
            assert "/opt/cni/bin/bridge: Read-only file system" in result["msg"]
    assert os.listdir("/opt/cni/bin") == []


@pytest.mark.parametrize("folder", ["/etc/cni/net.d", "/var/lib/podwire/state"])
@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_a_directory_that_cannot_be_written_is_named(mounted, run_module, folder, kind):
    for parent in ("/var/lib/podwire", "/var/lib/podwire/state"):
        os.makedirs(parent, mode=0o700, exist_ok=True)
    mounted(folder, "size=16k,mode=0700")
    if kind == "full":
        fill(folder)
    else:
        mounted(folder, "ro", again=True)
    result = run_module("cni_conf", CONF)
    assert (result["failed"], result["code"]) == (True, "write_failed"), result
    assert folder in result["msg"] and ("No space left" if kind == "full" else "Read-only file system") in result["msg"]
    assert not os.path.exists(PATH)
