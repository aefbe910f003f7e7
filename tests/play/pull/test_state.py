# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a run leaves when it is killed or cannot write, and what the next one makes of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess

import pytest

from ansible_collections.podwire.cni.tests.play.pull.site import PYTHON, sh
from ansible_collections.podwire.cni.tests.tools import sample


def test_a_commit_that_cannot_be_written_leaves_the_one_before_in_force(puller, repository):
    good = puller.run()["commit"]
    puller.noted()
    repository.play("second")
    repository.write("large", "0" * 1_000_000)
    second = repository.commit()
    # As if the disk was full: the commit has some KiB, and its files have more.
    command = ["prlimit", "--fsize=500000", *puller.command()]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
    status = json.loads((puller.state / "status.json").read_text())
    assert (status["commit"], puller.codes(), puller.noted(), puller.trees()) == (good, ["git"], ["first"], [good])
    assert puller.run()["commit"] == second


def test_a_status_file_that_cannot_be_written(puller):
    puller.run()
    (puller.state / "status.json").unlink()
    (puller.state / "status.json").mkdir()
    done = subprocess.run(puller.command(), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "status.json" in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr


# Ends the program before the Nth time that it starts a program or changes a file; prints what it was about to do.
KILLER = """\
import os, runpy, signal, sys
left = int(sys.argv.pop(1))
def watch(event, arguments):
    global left
    changes = event in ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree", "subprocess.Popen")
    if changes or event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        left -= 1
        if left == 0:
            os.write(1, f"{event} {arguments[:2]}".encode())
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(watch)
sys.argv.pop(0)
sys.dont_write_bytecode = True
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_killed_at_any_moment(puller, repository):
    """Whatever it was about to do, the next run converges, and only what was verified is ever run."""
    moments = []
    for turn in range(1, 1000, sample.STEP):
        repository.play(f"turn{turn}")
        good = repository.commit(date=1_700_000_000 + turn)
        python, program = puller.command()[:1], puller.command()[len(PYTHON) :]
        done = subprocess.run(
            [*python, "-I", "-c", KILLER, str(turn), *program], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        moments.append(done.stdout.splitlines()[-1])
        puller.noted()
        status = puller.run()
        assert (status["commit"], status["problems"], puller.noted()) == (good, [], [f"turn{turn}"]), moments[-1]
        assert puller.trees() == [good], moments[-1]
        assert [path.name for path in puller.state.iterdir() if "new" in path.name] == [], moments[-1]
    if sample.STEP > 1:
        return
    renamed = [moment.rsplit("/", 1)[-1] for moment in moments if moment.startswith("os.rename")]
    assert renamed == ["current.json')", "pull.prom')", "status.json')"]
    assert sum(moment.startswith("subprocess.Popen ('git'") for moment in moments) == 6


@pytest.mark.parametrize("call", range(1, 7))
def test_git_goes_on_when_the_program_was_killed(puller, repository, tmp_path, call):
    """What the next run does meanwhile is in its own directory."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").write_text(
        f"#!/bin/sh\necho >>{tmp_path}/calls; test $(wc -l <{tmp_path}/calls) != {call} || kill -9 $PPID\n"
        f'exec {shutil.which("git")} "$@"\n'
    )
    (programs / "git").chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    assert subprocess.run(puller.command(), env=environment, check=False).returncode == -signal.SIGKILL
    assert puller.run()["problems"] == []
    assert puller.run()["commit"] == repository.git("rev-parse", "HEAD")


def test_a_git_that_was_killed_is_in_nobody_s_way(puller, repository, tmp_path):
    good = puller.run()
    repository.play("second")
    newer = repository.commit()
    # The server kills git when it has locked its list of shallow commits.
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\nwhile ! find {puller.state} -name shallow.lock | grep -q .; do :; done\nkill -9 0\n")
    hook.chmod(0o755)
    (tmp_path / "gitconfig").write_text(f"[uploadpack]\npackObjectsHook = {hook}\n")
    status = puller.run(environment={"GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig")})
    assert (status["commit"], puller.codes()) == (good["commit"], ["not_fetched"])
    status = puller.run()
    assert (status["commit"], puller.codes(), puller.noted()) == (newer, [], ["first", "first", "second"])


def test_the_state_of_an_earlier_release_converges(puller, repository):
    """It had one repository for all runs, in which a killed git left its locks."""
    commit = puller.run()["commit"]
    old = {"commit": commit, "branch": "main", "tree": str(puller.state / "trees" / commit), "collections": ""}
    (puller.state / "current.json").write_text(json.dumps(old))
    sh("git", "clone", "--quiet", "--bare", "--depth", "1", f"file://{repository.path}", puller.state / "repo.git")
    (puller.state / "repo.git" / "shallow.lock").touch()
    (puller.state / "tree.tar").touch()
    (puller.state / "trees" / f"{commit}.new").mkdir()
    (puller.state / "collections-0123.new").mkdir()
    for _again in range(2):
        assert puller.run()["problems"] == []
    assert puller.noted() == ["first"] * 3
    made = {"trees", "keys", "lock", "status.json", "current.json"}
    assert {path.name for path in puller.state.iterdir()} == made
    assert puller.trees() == [commit]


def test_a_damaged_state_is_made_again(puller, repository):
    puller.run()
    for name in ("current.json", "status.json"):
        for text in ("", "[]", "{", '{"tree": 7, "commit": []}'):
            (puller.state / name).write_text(text)
            assert puller.run()["result"] == "ok", (name, text)
    shutil.rmtree(puller.state / "trees")
    assert puller.run()["result"] == "ok"
