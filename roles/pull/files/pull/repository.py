# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The git repository: what of it is verified, and in force."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import subprocess

from common import Problem, first_line, last_words, read_json, run, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

CANDIDATE, VERIFIED = "refs/heads/candidate", "refs/heads/verified"


class Repository:
    """The repository, and what of it is in force: a commit, its files, and the collections that belong to it."""

    def __init__(self, config: dict[str, t.Any], state: str) -> None:
        self._config = config
        self._state = state
        self._git = os.path.join(state, "repo.git")
        self._seconds = config["timeout"]

    @property
    def current(self) -> dict[str, t.Any]:
        """What is in force: ``commit``, ``branch``, ``tree`` and ``collections``; {} before the first one."""
        found = read_json(os.path.join(self._state, "current.json"))
        return found if os.path.isdir(str(found.get("tree", ""))) else {}

    def update(self) -> None:
        """Fetch, verify, and put in force. Raises Problem; then nothing has changed."""
        self._fetch()
        commit = self._git_run("rev-parse", "--verify", CANDIDATE, code="git").strip()
        current = self.current
        # Always, because a signer may have been removed since.
        self._verify(commit)
        known = current.get("commit") == commit and current.get("branch") == self._config["branch"]
        if known and os.path.isdir(str(current["collections"] or current["tree"])):
            # What a run that was killed has left.
            self._remove_old(current)
            return
        self._refuse_older(commit, current)
        tree = self._extract(commit)
        fresh = {"commit": commit, "branch": self._config["branch"], "tree": tree, "collections": self._install(tree)}
        write(os.path.join(self._state, "current.json"), json.dumps(fresh))
        self._git_run("update-ref", VERIFIED, commit, code="git")
        self._remove_old(fresh)

    def _fetch(self) -> None:
        if not os.path.isdir(self._git):
            self._git_run("init", "--quiet", "--bare", self._git, code="git", inside=False)
        refs = f"+refs/heads/{self._config['branch']}:{CANDIDATE}"
        words = ["fetch", "--quiet", "--depth", "1", "--no-tags", "--force", "--", self._config["url"], refs]
        self._git_run("-c", "fetch.fsckObjects=true", *words, code="not_fetched")

    def _verify(self, commit: str) -> None:
        """Accept only what was signed with the kind of key that the configuration names."""
        kind = self._config["verify"]
        if kind == "none":
            return
        keys = os.path.join(self._state, "keys")
        # The other kind of signature finds no program, and GnuPG's keys are those of the configuration.
        words = ["-c", "gpg.ssh.allowedSignersFile=" + os.path.join(keys, "allowed_signers")]
        words += ["-c", "gpg.program=/bin/false"] if kind == "ssh" else ["-c", "gpg.ssh.program=/bin/false"]
        env = {"GNUPGHOME": os.path.join(keys, "gnupg")}
        try:
            self._git_run(*words, "verify-commit", commit, code="not_verified", env=env)
        except Problem as error:
            if error.code != "not_verified":
                raise
            signers = "cni_pull_allowed_signers" if kind == "ssh" else "cni_pull_gpg_keys"
            text = f"commit {commit[:12]} has no valid signature of those in {signers}, so its files were not written"
            raise Problem("not_verified", f"{text} ({error})") from error

    def _refuse_older(self, commit: str, current: dict[str, t.Any]) -> None:
        """A server must not be able to bring back an old commit, whose signature is still valid."""
        if self._config["rollback"] or not current or current.get("branch") != self._config["branch"]:
            return
        dates = []
        for one in (commit, current["commit"]):
            dates.append(int(self._git_run("show", "--no-patch", "--format=%ct", one, code="git").split()[0]))
        if dates[0] < dates[1]:
            raise Problem(
                "older_commit",
                f"commit {commit[:12]} is older than {current['commit'][:12]}, which is in force; to go back, commit "
                "the revert, or set cni_pull_rollback",
            )

    def _extract(self, commit: str) -> str:
        """Write the files of a verified commit, and return their directory."""
        tree = os.path.join(self._state, "trees", commit)
        if not os.path.isdir(tree):
            fresh = tree + ".new"
            shutil.rmtree(fresh, ignore_errors=True)
            os.makedirs(fresh, mode=0o700)
            archive = os.path.join(self._state, "tree.tar")
            self._git_run("archive", "--format=tar", f"--output={archive}", commit, code="git")
            done = run(["tar", "-x", "-C", fresh, "-f", archive], self._seconds, stderr=subprocess.PIPE)
            os.unlink(archive)
            if done.returncode:
                raise Problem("git", f"cannot write the files of commit {commit[:12]}: {last_words(done)}")
            os.rename(fresh, tree)
        return tree

    def _install(self, tree: str) -> str:
        """Install the collection archive of the repository, and return its directory; "" if there is none."""
        name = self._config["collection"]
        if not name:
            return ""
        path = os.path.realpath(os.path.join(tree, name))
        if not path.startswith(os.path.realpath(tree) + "/") or not os.path.isfile(path):
            raise Problem("no_collection", f"the repository has no file {name}, which cni_pull_collection names")
        wanted = self._config["collection_sha256"] or (first_line(f"{path}.sha256").split() or [""])[0]
        if not wanted:
            text = f"there is no checksum for {name}; commit {name}.sha256, or set cni_pull_collection_sha256"
            raise Problem("no_checksum", text)
        with open(path, "rb") as stream:
            found = hashlib.sha256(stream.read()).hexdigest()
        if found != wanted.lower():
            raise Problem("wrong_checksum", f"{name} has the SHA-256 {found}, want {wanted}")
        target = os.path.join(self._state, f"collections-{found[:16]}")
        if not os.path.isdir(target):
            fresh = target + ".new"
            shutil.rmtree(fresh, ignore_errors=True)
            # Without --force, nothing is installed if the host has the same version somewhere else.
            words = ["ansible-galaxy", "collection", "install", "--force", "--offline", "--collections-path", fresh]
            done = run([*words, path], self._config["run_timeout"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                raise Problem("no_collection", f"cannot install {name}: {last_words(done)}")
            os.rename(fresh, target)
        return target

    def _remove_old(self, current: dict[str, t.Any]) -> None:
        kept = {current["tree"], current["collections"]}
        for path in glob.glob(f"{self._state}/trees/*") + glob.glob(f"{self._state}/collections-*"):
            if path not in kept:
                shutil.rmtree(path, ignore_errors=True)

    def _git_run(self, *words: str, code: str, inside: bool = True, env: t.Mapping[str, str] | None = None) -> str:
        where = ["--git-dir", self._git] if inside else []
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        try:
            done = run(
                ["git", *where, *words], self._seconds, env={**os.environ, **self._limits(), **(env or {})}, **options
            )
        except Problem as error:
            if error.code != "timeout":
                raise
            text = f"git did not end within {self._seconds:g} seconds (cni_pull_timeout): {words[-1]:.200}"
            raise Problem(code, text) from error
        if done.returncode:
            raise Problem(code, f"git: {last_words(done)}")
        return done.stdout

    def _limits(self) -> dict[str, str]:
        """Return what makes git end on its own if a server does not answer, or asks for a password."""
        keys = os.path.join(self._state, "keys")
        ssh = "ssh -oBatchMode=yes -oConnectTimeout=10 -oServerAliveInterval=5 -oServerAliveCountMax=3"
        if os.path.isfile(f"{keys}/ssh_key"):
            ssh += f" -oIdentitiesOnly=yes -i {keys}/ssh_key"
        if os.path.isfile(f"{keys}/known_hosts"):
            ssh += f" -oStrictHostKeyChecking=yes -oUserKnownHostsFile={keys}/known_hosts"
        limits = {"GIT_HTTP_LOW_SPEED_LIMIT": "1000", "GIT_HTTP_LOW_SPEED_TIME": "20", "GIT_TERMINAL_PROMPT": "0"}
        return {**limits, "GIT_SSH_COMMAND": ssh}
