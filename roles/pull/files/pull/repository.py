# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The git repository: which of its commits is verified, and in force."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile

from common import Problem, first_line, last_words, read_json, run, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

# The file in which a commit names its repository and branch, and the ref for what was fetched.
NAMES, CANDIDATE = "podwire-pull.json", "refs/heads/candidate"
# Everything that a run makes, and what earlier releases and killed runs left: only what is in force is kept.
MADE = ("new-*", "trees/*", "collections-*", "repo.git", "tree.tar")
# Programs have URLs as arguments, and everybody on the host can read those.
SECRET_IN_URL = re.compile(r"https?://([^/]*@|[^?]*[?])|[a-z]+://[^/@]*:[^/]*@", re.IGNORECASE)


class Repository:
    """The commit that is in force, its files, and the collection that belongs to it.

    Each run fetches into a directory of its own, so nothing that a killed git leaves can be in the way of the next run.
    What a run makes is in force when ``current.json`` names it, and that file is replaced by a rename. Whatever else is
    there may be half written, and is removed.
    """

    def __init__(self, config: dict[str, t.Any], state: str) -> None:
        self._config = config
        self._state = state
        self._git = ""
        self._seconds = config["timeout"]

    @property
    def current(self) -> dict[str, t.Any]:
        """In force: ``repository``, ``branch``, ``commit``, ``date``, ``tree``, ``collections``; {} if nothing is.

        Earlier releases did not note the repository and the date.
        """
        current = read_json(os.path.join(self._state, "current.json"))
        return current if os.path.isdir(str(current.get("tree", ""))) else {}

    def update(self) -> None:
        """Fetch, verify, and put in force. Raises Problem and OSError; then the commit before stays in force."""
        try:
            self._git = tempfile.mkdtemp(prefix="new-", dir=self._state)
            commit, date = self._fetch()
            # Always, because a signer may have been removed since.
            self._verify(commit)
            self._refuse_other(commit)
            current = self.current
            self._refuse_older(commit, date, current)
            names = {name: self._config[name] for name in ("repository", "branch")}
            tree = self._check_out(commit, current)
            fresh = {**names, "commit": commit, "date": date, "tree": tree, "collections": self._install(tree, current)}
            if fresh != current:
                # After a loss of power, what is in force must be complete, too.
                os.sync()
                write(os.path.join(self._state, "current.json"), json.dumps(fresh))
        finally:
            self._remove_others()

    def _fetch(self) -> tuple[str, int]:
        """Return the newest commit of the branch, and its date."""
        url = self._config["url"]
        if SECRET_IN_URL.match(url):
            raise Problem(
                "secret_in_url",
                "the URL of the repository contains a password, a token or a query, which everybody on the host could "
                "read in the list of processes; take it out of cni_pull_url, and set cni_pull_credentials or "
                "cni_pull_ssh_key",
            )
        self._git_run("init", "--quiet", "--bare", "--template=", code="git")
        words = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-auto-maintenance", "--", url]
        refs = f"+refs/heads/{self._config['branch']}:{CANDIDATE}"
        self._git_run("-c", "fetch.fsckObjects=true", *self._credentials(), *words, refs, code="not_fetched")
        form = "--format=%(objectname) %(committerdate:unix)"
        commit, _space, date = self._git_run("for-each-ref", form, CANDIDATE, code="git").strip().partition(" ")
        return commit, int(date or 0)

    def _credentials(self) -> list[str]:
        """Return the options with which git reads passwords from a file; of its own, it forgets one that is refused."""
        path = os.path.join(self._state, "keys", "credentials")
        if not os.path.isfile(path):
            return []
        store = f"git credential-store --file={shlex.quote(path)} get"
        return ["-c", "credential.helper=", "-c", f'credential.helper=!f() {{ test "$1" != get || {store}; }}; f']

    def _verify(self, commit: str) -> None:
        """Accept only what was signed with the kind of key that the configuration names."""
        kind = self._config["verify"]
        if kind == "none":
            return
        keys = os.path.join(self._state, "keys")
        # Other kinds of signatures find no program, and GnuPG's keys are those of the configuration.
        words = ["-c", "gpg.x509.program=/bin/false", "-c", f"gpg.ssh.allowedSignersFile={keys}/allowed_signers"]
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

    def _refuse_other(self, commit: str) -> None:
        """Accept only a commit for this repository and branch: its signature says nothing about where it was served."""
        wanted = {name: self._config[name] for name in ("repository", "branch")}
        try:
            names = json.loads(self._git_run("cat-file", "blob", f"{commit}:{NAMES}", code="not_named"))
        except (Problem, ValueError, RecursionError) as error:
            if isinstance(error, Problem) and error.code != "not_named":
                raise
            names = None
        if not isinstance(names, dict) or not all(isinstance(names.get(name), str) for name in wanted):
            raise Problem(
                "not_named",
                f"commit {commit[:12]} does not say where it belongs, so its files were not written; commit a file "
                f"{NAMES} with {json.dumps(wanted)}",
            )
        for name, value in wanted.items():
            if names[name] != value:
                raise Problem(
                    f"other_{name}",
                    f"commit {commit[:12]} is for the {name} {names[name]!r:.200}, but this host follows {value!r}, so "
                    f"its files were not written; correct {NAMES}, or set cni_pull_{name}",
                )

    def _refuse_older(self, commit: str, date: int, current: dict[str, t.Any]) -> None:
        """A server must not be able to bring back an old commit, whose signature is still valid."""
        same = all(current.get(name) == self._config[name] for name in ("repository", "branch"))
        # Of two of the same second, nobody knows which is older.
        newer = date > current.get("date", -1) or commit == current.get("commit")
        if same and not newer and not self._config["rollback"]:
            raise Problem(
                "older_commit",
                f"commit {commit[:12]} is not newer than {current['commit'][:12]}, which is in force; to go back, "
                "commit the revert, or set cni_pull_rollback",
            )

    def _check_out(self, commit: str, current: dict[str, t.Any]) -> str:
        """Write the files of a verified commit, and return their directory."""
        tree = os.path.join(self._state, "trees", commit)
        if tree != current.get("tree"):
            remove(tree)
            # Playbooks may copy files with their modes.
            before = os.umask(0o022)
            try:
                os.makedirs(tree)
                self._git_run("--work-tree", tree, "checkout", "--quiet", "--detach", commit, code="git")
            finally:
                os.umask(before)
        return tree

    def _install(self, tree: str, current: dict[str, t.Any]) -> str:
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
            digest = hashlib.sha256(stream.read()).hexdigest()
        if digest != wanted.lower():
            raise Problem("wrong_checksum", f"{name} has the SHA-256 {digest}, want {wanted}")
        target = os.path.join(self._state, f"collections-{digest[:16]}")
        if target != current.get("collections") or not os.path.isdir(target):
            remove(target)
            # Without --force, nothing is installed if the host has the same version somewhere else.
            words = ["ansible-galaxy", "collection", "install", "--force", "--offline", "--collections-path", target]
            done = run([*words, path], self._config["run_timeout"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                raise Problem("no_collection", f"cannot install {name}: {last_words(done)}")
        return target

    def _remove_others(self) -> None:
        current = self.current
        kept = {current.get("tree"), current.get("collections")}
        for pattern in MADE:
            for path in glob.glob(os.path.join(glob.escape(self._state), pattern)):
                if path not in kept:
                    # What a git whose run was killed still writes to goes the next time.
                    with contextlib.suppress(OSError):
                        remove(path)

    def _git_run(self, *words: str, code: str, env: t.Mapping[str, str] | None = None) -> str:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        try:
            words = ("git", "--git-dir", self._git, *words)
            done = run([*words], self._seconds, env={**os.environ, **self._limits(), **(env or {})}, **options)
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


def remove(path: str) -> None:
    """Remove what is there, and what it contains; a link leads nowhere."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
