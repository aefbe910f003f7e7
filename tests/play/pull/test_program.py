# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The program of the role pull: what it runs, and what it never runs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.play.pull.site import PROGRAM, PYTHON, sh


def test_a_signed_commit_runs_each_time(real, repository):
    """Also without a new commit: somebody may have changed the host."""
    commit = repository.git("rev-parse", "HEAD")
    for _again in range(2):
        status = real.run()
        assert (status["result"], status["commit"], status["problems"]) == ("ok", commit, [])
        assert real.noted() == ["first"]
    repository.play("second")
    newer = repository.commit()
    assert real.run()["commit"] == newer
    assert real.noted() == ["second"]
    assert real.trees() == [newer]


@pytest.mark.parametrize("key", [None, "stranger"])
def test_what_is_not_signed_by_the_team_never_becomes_files(puller, repository, key):
    repository.play("evil")
    evil = repository.commit(key)
    first = puller.run(status=1)
    assert (first["commit"], puller.codes(), puller.noted(), puller.trees()) == (
        "",
        ["not_verified", "nothing_verified"],
        [],
        [],
    )
    repository.git("reset", "--hard", "--quiet", "HEAD~1")
    good = puller.run()["commit"]
    assert puller.noted() == ["first"]
    repository.git("reset", "--hard", "--quiet", evil)
    # What was verified before stays in force.
    status = puller.run(status=1)
    assert (status["commit"], status["result"], puller.codes()) == (good, "failed", ["not_verified"])
    assert "cni_pull_allowed_signers" in status["problems"][0]["message"]
    assert (puller.noted(), puller.trees()) == (["first"], [good])


def test_a_signer_who_is_removed_counts_no_more(puller, keys):
    puller.run()
    (puller.state / "keys" / "allowed_signers").write_text(
        f"other@example.org {keys['stranger'].with_suffix('.pub').read_text()}"
    )
    puller.run(status=1)
    assert puller.codes() == ["not_verified"]


def test_gpg_signatures(puller, repository, tmp_path):
    """With keys of the configuration only, and not where SSH signatures are asked for."""
    mine = tmp_path / "mine"
    mine.mkdir(mode=0o700)
    made = {"GNUPGHOME": str(mine)}
    try:
        sh("gpg", "--batch", "--passphrase", "", "--quick-gen-key", "a@example.org", env={**os.environ, **made})
        repository.git("config", "gpg.format", "openpgp")
        repository.git("commit", "-Sa@example.org", "--quiet", "--allow-empty", "--message", "by gpg", **made)
        puller.run(status=1)
        puller.run(status=1, verify="gpg")
        assert puller.codes() == ["not_verified", "nothing_verified"]
        ring = puller.state / "keys" / "gnupg"
        ring.mkdir(mode=0o700)
        public = sh("gpg", "--armor", "--export", env={**os.environ, **made})
        sh("gpg", "--homedir", ring, "--batch", "--import", input=public)
        assert puller.run(verify="gpg")["result"] == "ok"
        puller.run(status=1)
        assert puller.codes() == ["not_verified"]
    finally:
        for home in (mine, puller.state / "keys" / "gnupg"):
            subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)


@pytest.mark.parametrize("later", [60, 0])
def test_an_old_commit_cannot_come_back(puller, repository, later):
    old, date = repository.git("show", "--no-patch", "--format=%H %ct").split()
    repository.play("fixed")
    new = repository.commit(date=int(date) + later)
    puller.run()
    repository.git("reset", "--hard", "--quiet", old)
    assert puller.run(status=1)["commit"] == new
    assert puller.codes() == ["older_commit"]
    assert puller.noted() == ["fixed", "fixed"]
    # Another branch may be older, and who wants to go back can.
    repository.git("switch", "--quiet", "--create", "stable")
    repository.name("stable")
    stable = repository.commit(date="1700000000")
    assert puller.run(branch="stable")["commit"] == stable
    repository.git("switch", "--quiet", "main")
    repository.git("reset", "--hard", "--quiet", new)
    puller.run()
    repository.git("reset", "--hard", "--quiet", old)
    assert puller.run(rollback=True)["commit"] == old


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "not_named"),
        ("", "not_named"),
        ("[" * 100_000, "not_named"),
        ('["fleet", "main"]', "not_named"),
        ('{"repository": "fleet"}', "not_named"),
        ('{"repository": "fleet", "branch": ["main"]}', "not_named"),
        ('{"repository": "fleet", "branch": "canary"}', "other_branch"),
        ('{"repository": "Fleet", "branch": "main"}', "other_repository"),
    ],
)
def test_a_commit_says_for_which_repository_and_branch_it_is(puller, repository, text, code):
    """A server can give any signed commit for the branch that a host follows: a canary, or that of another fleet."""
    good = puller.run()["commit"]
    puller.noted()
    repository.play("stray")
    path = repository.path / "podwire-pull.json"
    path.unlink() if text is None else path.write_text(text)
    repository.commit()
    for verify in ("ssh", "none"):
        status = puller.run(verify=verify, status=1)
        assert (status["commit"], puller.codes(), puller.noted(), puller.trees()) == (good, [code], ["first"], [good])
    assert "podwire-pull.json" in status["problems"][0]["message"]


def test_a_branch_is_moved_forward_by_a_merge(puller, repository):
    """As the documentation says: each branch keeps the file that names it."""
    repository.git("switch", "--quiet", "--create", "stable")
    repository.name("stable")
    repository.commit()
    for turn in ("second", "third"):
        repository.git("switch", "--quiet", "main")
        repository.play(f"{turn}")
        repository.commit()
        repository.git("switch", "--quiet", "stable")
        repository.git("-c", f"user.signingkey={repository.keys['team']}", "merge", "--quiet", "-S", "main")
        puller.run(branch="stable")
        assert puller.noted() == [turn]


def test_a_failed_commit_is_tried_again_and_the_timer_waits_longer(real, repository):
    repository.write("local.yml", "- hosts: all\n  gather_facts: false\n  tasks: [{ansible.builtin.fail: {}}]\n")
    repository.commit()
    for count in (1, 2):
        status = real.run(status=1)
        assert (status["failures"], real.codes(), status["last_success"]) == (count, ["playbook_failed"], None)
    before = (real.state / "status.json").read_bytes()
    real.run(trigger="podwire-cni-pull.timer")
    assert "2 runs in a row failed" in real.said
    assert (real.state / "status.json").read_bytes() == before
    # A change of files and a person do not wait.
    real.run(trigger="podwire-cni-pull.path", status=1)
    repository.play("repaired")
    repository.commit()
    assert real.run()["failures"] == 0
    real.run(trigger="podwire-cni-pull.timer")
    assert real.noted() == ["repaired", "repaired"]


def test_a_name_that_is_not_in_the_inventory(real):
    status = real.run(name="node7", status=1)
    assert (real.codes(), real.noted()) == (["name_unknown"], [])
    assert "this host is called node7" in status["problems"][0]["message"]
    assert "cni_pull_name" in status["problems"][0]["message"]


def test_a_host_that_was_cloned(puller):
    puller.run(machine_id=Path("/etc/machine-id").read_text().strip() if Path("/etc/machine-id").exists() else "")
    puller.noted()
    puller.run(machine_id="0123456789abcdef0123456789abcdef", status=1)
    assert (puller.codes(), puller.noted()) == (["other_machine"], [])


@pytest.fixture(scope="session")
def archive(tmp_path_factory):
    """A small collection as an archive."""
    source = tmp_path_factory.mktemp("collection")
    text = {"namespace": "own", "name": "little", "version": "1.0.0", "readme": "README.md", "authors": ["a"]}
    (source / "galaxy.yml").write_text(json.dumps(text))
    (source / "README.md").write_text("little")
    (source / "playbooks").mkdir()
    (source / "playbooks" / "noted.yml").write_text(
        "- hosts: all\n  gather_facts: false\n  tasks:\n    - ansible.builtin.shell: echo collection >> {{ ran }}\n"
    )
    sh("ansible-galaxy", "collection", "build", "--output-path", source, source)
    return source / "own-little-1.0.0.tar.gz"


def test_the_collection_of_the_repository(real, repository, archive):
    shutil.copy(archive, repository.path)
    repository.write("local.yml", "- ansible.builtin.import_playbook: own.little.noted\n")
    given = {"collection": archive.name}
    repository.commit()
    real.run(**given, status=1)
    assert real.codes() == ["no_checksum", "nothing_verified"]
    repository.write(f"{archive.name}.sha256", hashlib.sha256(archive.read_bytes()).hexdigest() + "  a file\n")
    good = repository.commit()
    assert real.run(**given)["commit"] == good
    assert real.noted() == ["collection"]
    # Another archive under the same name: the commit before stays in force.
    with (repository.path / archive.name).open("ab") as stream:
        stream.write(b"\0")
    repository.commit()
    assert real.run(**given, status=1)["commit"] == good
    assert (real.codes(), real.noted()) == (["wrong_checksum"], ["collection"])
    for name in ("nosuch.tar.gz", "../../ran", "/etc/hostname"):
        real.run(collection=name, status=1)
        assert real.codes() == ["no_collection"]


def test_boot_and_what_runs_once_in_a_boot(puller, repository, silent):
    repository.play("early", "boot.yml")
    repository.play("once", "once.yml")
    repository.commit()
    given = {"boot_playbooks": ["boot.yml"], "once_playbooks": ["once.yml"]}
    assert subprocess.run(puller.command("--boot", **given), check=True, capture_output=True).stdout.startswith(
        b"there is no"
    )
    puller.run(**given)
    puller.run(**given)
    assert puller.noted() == ["once", "first", "first"]
    # Without playbooks for boot, nothing happens, and nothing counts as failed.
    before = (puller.state / "status.json").read_bytes()
    puller.run("--boot")
    assert (puller.state / "status.json").read_bytes() == before
    # Another boot: no server is asked before the runtimes start.
    status = json.loads((puller.state / "status.json").read_text())
    (puller.state / "status.json").write_text(json.dumps({**status, "boot_id": "another"}))
    puller.run("--boot", **given, url=f"git://127.0.0.1:{silent}/r")
    puller.run(**given)
    assert puller.noted() == ["early", "once", "first"]


def test_only_one_at_a_time(puller, tmp_path):
    go_on = tmp_path / "go-on"
    os.mkfifo(go_on)
    with open(Path(puller.config["ansible_path"], "ansible-playbook"), "a", encoding="utf-8") as stream:
        stream.write(f"cat {go_on}\n")
    first = subprocess.Popen(puller.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with open(go_on, "w", encoding="utf-8"):
        second = subprocess.run(puller.command(), check=True, capture_output=True, text=True)
        assert second.stdout == "another pull is running\n"
    assert first.communicate()[0].count("local.yml of commit") == 1 and first.returncode == 0
    assert puller.noted() == ["first"]


def test_programs_that_cannot_be_started(puller, tmp_path, monkeypatch):
    """A damaged file is found, but the kernel refuses it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("git", "tar", "ssh-keygen", "ansible-inventory"):
        (programs / name).symlink_to(shutil.which(name))
    for name in ("ansible-playbook", "rsync"):
        (programs / name).write_bytes(b"\x7fELF damaged")
        (programs / name).chmod(0o755)
    (tmp_path / "report" / "hosts").mkdir(parents=True)
    (tmp_path / "report" / "hosts" / "node1.json").write_text("{}")
    monkeypatch.setenv("PATH", str(programs))
    status = puller.run(status=1, ansible_path=str(programs), playbooks=["local.yml", "other.yml"], push=str(tmp_path))
    assert puller.codes() == ["system", "system", "not_pushed"]
    assert [one["status"] for one in status["playbooks"]] == [-1, -1]


def test_metrics(puller, repository):
    puller.run()
    text = (puller.directory / "pull.prom").read_text()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert values["podwire_cni_pull_failed"] == "0"
    assert abs(float(values["podwire_cni_pull_last_success_timestamp_seconds"]) - time.time()) < 3600
    repository.commit(None)
    puller.run(status=1)
    assert "\npodwire_cni_pull_failed 1\n" in (puller.directory / "pull.prom").read_text()


def test_metrics_that_cannot_be_written_fail_no_run(puller):
    puller.directory.joinpath("file").touch()
    for name in ("no/such.prom", "file/pull.prom"):
        status = puller.run(textfile=str(puller.directory / name))
        assert (status["result"], puller.codes()) == ("ok", ["no_textfile"])
        assert str(puller.directory / name) in status["problems"][0]["message"]


def test_a_link_beside_the_metrics_leads_nowhere(puller):
    """The directory may belong to the user of the node exporter."""
    other = puller.directory / "other"
    other.write_text("as before")
    (puller.directory / "pull.prom.new").symlink_to(other)
    assert puller.run()["result"] == "ok"
    assert other.read_text() == "as before"
    assert "podwire_cni_pull_failed 0" in (puller.directory / "pull.prom").read_text()


def test_without_a_configuration(tmp_path):
    for text in (None, "", "[1]"):
        path = tmp_path / "pull.json"
        if text is not None:
            path.write_text(text)
        done = subprocess.run([*PYTHON, PROGRAM, "--config", path], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "run the role podwire.cni.pull" in done.stderr and "Traceback" not in done.stderr
