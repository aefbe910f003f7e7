#!/usr/bin/python3
# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings this host to what a verified commit of a git repository says: podwire-cni-pull [--config FILE] [--boot]

Fetches a branch, verifies the signature of its newest commit, and only then writes its files. A commit that does not
hold changes nothing: the one before stays in force, and its playbooks run. The status file tells what happened.
At boot, before the runtimes start, the commit that is in force is not replaced: nothing waits for the network then.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

CONFIG = "/etc/podwire/pull.json"
MACHINE_ID, BOOT_ID = "/etc/machine-id", "/proc/sys/kernel/random/boot_id"
# After failures, a start by the timer waits: the interval, twice of it, and so on, up to this many.
LONGEST_WAIT = 16
# A record has some KiB, and a status file less.
LARGEST = 64 * 1024 * 1024
CANDIDATE, VERIFIED = "refs/heads/candidate", "refs/heads/verified"


class Problem(Exception):
    """What went wrong, for people, with a stable word to test for."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def run(words: list[str], seconds: float, **options: t.Any) -> subprocess.CompletedProcess[str]:
    """Run a program with all it starts, for at most *seconds*. Raises Problem ``timeout``, ``missing_program``."""
    try:
        process = subprocess.Popen(
            words, text=True, errors="replace", stdin=subprocess.DEVNULL, start_new_session=True, **options
        )
    except FileNotFoundError as error:
        raise Problem("missing_program", f"{words[0]} is not installed ({error.filename})") from error
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Problem("timeout", f"{' '.join(words[:2])} did not end within {seconds:g} seconds") from None
    finally:
        # Its children, too, also if this program is asked to end.
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def read_json(path: str) -> dict[str, t.Any]:
    """Return an object of a file; {} if the file is missing or no object."""
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.loads(stream.read(LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write(path: str, text: str, mode: int = 0o600) -> None:
    """Write a file, complete or not at all."""
    fresh = f"{path}.{os.getpid()}.new"
    with open(fresh, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
        stream.write(text)
        os.fchmod(stream.fileno(), mode)
        os.fsync(stream.fileno())
    os.replace(fresh, path)


def first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as stream:
            return stream.readline(200).strip()
    except OSError:
        return ""


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    """Return the end of what a program printed, as one line without control characters."""
    lines = [line for line in f"{done.stdout or ''}\n{done.stderr or ''}".splitlines() if line.strip()]
    text = " ".join(" ".join(lines[-3:]).split())
    return "".join(sign if sign.isprintable() else "?" for sign in text)[-500:] or f"exit status {done.returncode}"


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
        if current.get("commit") == commit and current.get("branch") == self._config["branch"]:
            if os.path.isdir(str(current["collections"] or current["tree"])):
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
            words = ["ansible-galaxy", "collection", "install", "--offline", "--collections-path", fresh, path]
            done = run(words, self._config["run_timeout"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                raise Problem("no_collection", f"cannot install {name}: {last_words(done)}")
            os.rename(fresh, target)
        return target

    def _remove_old(self, current: dict[str, t.Any]) -> None:
        kept = {current["tree"], current["collections"]}
        for path in glob.glob(f"{self._state}/trees/*") + glob.glob(f"{self._state}/collections-*"):
            if path not in kept:
                shutil.rmtree(path, ignore_errors=True)

    def _git_run(
        self, *words: str, code: str, inside: bool = True, env: t.Mapping[str, str] | None = None
    ) -> str:
        where = ["--git-dir", self._git] if inside else []
        try:
            done = run(
                ["git", *where, *words],
                self._seconds,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **self._limits(), **(env or {})},
            )
        except Problem as error:
            if error.code == "timeout":
                verb = next((word for word in words if word in ("fetch", "verify-commit", "archive")), words[0])
                text = f"git {verb} did not end within {self._seconds:g} seconds (cni_pull_timeout)"
                raise Problem(code, text) from error
            raise
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


class Pull:
    """One run."""

    def __init__(self, config: dict[str, t.Any], boot: bool) -> None:
        self.config = config
        self._boot = boot
        self._state = config["state_dir"]
        self._path = os.path.join(self._state, "status.json")
        self._before = read_json(self._path)
        self._repository = Repository(config, self._state)
        self._problems: list[dict[str, str]] = []
        self._playbooks: list[dict[str, t.Any]] = []
        self._fetched = False

    def work(self) -> int:
        """Do it all, and return the exit status: 0, or 1 if a person has to look."""
        if self._waits():
            return 0
        begun = time.time()
        try:
            self._refuse_clone()
            if not self._boot:
                self._update()
            current = self._repository.current
            if not current and self._boot:
                print("there is no verified commit yet, so nothing runs at boot")
                return 0
            if not current:
                raise Problem("nothing_verified", "there is no verified commit yet, so nothing runs")
            self._refuse_stranger(current)
            for playbook in self._chosen():
                self._play(playbook, current)
        except Problem as error:
            self._tell(error)
        if not self._boot:
            self._push()
        return self._note(begun)

    def _waits(self) -> bool:
        """Return whether a start by the timer comes too soon after failures."""
        failures, last = self._before.get("failures"), self._before.get("ended")
        if not isinstance(failures, int) or not isinstance(last, (int, float)) or failures < 1:
            return False
        if not os.environ.get("TRIGGER_UNIT", "").endswith(".timer"):
            return False
        wait = self.config["interval"] * min(2 ** min(failures - 1, 10), LONGEST_WAIT)
        # A clock that was set back must not stop it.
        left = min(wait, last + wait - time.time() - self.config["interval"] / 2)
        if left > 0:
            print(f"{failures} runs in a row failed; the next one is in {left / 60:.0f} minutes")
        return left > 0

    def _refuse_clone(self) -> None:
        found = first_line(MACHINE_ID)
        if self.config["machine_id"] and found != self.config["machine_id"]:
            raise Problem(
                "other_machine",
                f"this is not the machine that is {self.config['name']}: its machine-id is {found or 'missing'}, and "
                f"{CONFIG} was written for {self.config['machine_id']}, as on a host that was cloned; run the role "
                "podwire.cni.pull for this host, or remove the file",
            )

    def _update(self) -> None:
        try:
            self._repository.update()
            self._fetched = True
        except Problem as error:
            self._tell(error)

    def _refuse_stranger(self, current: dict[str, t.Any]) -> None:
        words = ["ansible-inventory", "--inventory", self.config["inventory"], "--host", self.config["name"]]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        done = run(words, self.config["run_timeout"], cwd=current["tree"], env=self._environment(current), **options)
        if done.returncode:
            raise Problem(
                "name_unknown",
                f"this host is called {self.config['name']}, and {self.config['inventory']} of commit "
                f"{current['commit'][:12]} does not know it ({last_words(done)}); add it, or set cni_pull_name",
            )

    def _chosen(self) -> list[str]:
        if self._boot:
            return list(self.config["boot_playbooks"])
        fresh = self._before.get("boot_id") != first_line(BOOT_ID)
        return [*(self.config["once_playbooks"] if fresh else []), *self.config["playbooks"]]

    def _play(self, playbook: str, current: dict[str, t.Any]) -> None:
        config = self.config
        words = ["ansible-playbook", "--connection", "local", "--inventory", config["inventory"], "--limit", config["name"]]
        words += ["--extra-vars", json.dumps({"ansible_python_interpreter": "/usr/bin/python3"}), "--", playbook]
        print(f"{playbook} of commit {current['commit'][:12]}", flush=True)
        try:
            done = run(words, config["run_timeout"], cwd=current["tree"], env=self._environment(current))
        except Problem as error:
            self._tell(error)
            status = -1
        else:
            status = done.returncode
            if status:
                self._tell(Problem("playbook_failed", f"{playbook} ended with {status}; see the journal"))
        self._playbooks.append({"name": playbook, "status": status})

    def _environment(self, current: dict[str, t.Any]) -> dict[str, str]:
        paths = [current["collections"], os.path.join(current["tree"], "collections")]
        return {
            **os.environ,
            "ANSIBLE_HOME": os.path.join(self._state, "ansible"),
            "ANSIBLE_COLLECTIONS_PATH": ":".join(path for path in paths if path and os.path.isdir(path)),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCALHOST_WARNING": "0",
        }

    def _push(self) -> None:
        """Send the record of this host away, if there is one and a place for it."""
        target, path = self.config["push"], os.path.join(self.config["report_dir"], "hosts", f"{self.config['name']}.json")
        if not target or not os.path.isfile(path):
            return
        try:
            if target.startswith(("http://", "https://")):
                self._put(target, path)
            else:
                words = ["rsync", f"--timeout={int(self.config['timeout'])}", "--", path, target.rstrip("/") + "/"]
                done = run(words, self.config["timeout"] * 2, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                if done.returncode:
                    raise Problem("not_pushed", f"{target}: rsync: {last_words(done)}")
        except Problem as error:
            self._tell(Problem("not_pushed", str(error)))

    def _put(self, target: str, path: str) -> None:
        url = f"{target.rstrip('/')}/{urllib.parse.quote(os.path.basename(path), safe='')}"
        with open(path, "rb") as stream:
            data = stream.read(LARGEST)
        headers = {"Content-Type": "application/json"}
        token = first_line(os.path.join(self._state, "keys", "push_token"))
        if token:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(url, data=data, headers=headers, method="PUT")
        try:
            # A redirection of PUT is an error, so the token goes nowhere else.
            with urllib.request.urlopen(request, timeout=self.config["timeout"]):
                pass
        except (OSError, ValueError) as error:
            raise Problem("not_pushed", f"{target}: {' '.join(str(error).split())[:300]}") from error

    def _tell(self, problem: Problem) -> None:
        print(f"podwire-cni-pull: {problem} [{problem.code}]", file=sys.stderr, flush=True)
        self._problems.append({"code": problem.code, "message": str(problem)})

    def _note(self, begun: float) -> int:
        """Write the status, last, so that its age tells that a host has not been reached for long."""
        current, now = self._repository.current, time.time()
        played = bool(self._playbooks) and not any(one["status"] for one in self._playbooks)
        # A server that does not answer now and then is no reason to wake somebody: the age of last_fetch tells.
        failed = not played or any(one["code"] not in ("not_fetched", "not_pushed") for one in self._problems)
        failures = self._before.get("failures", 0)
        status = {
            "name": self.config["name"],
            "branch": self.config["branch"],
            "commit": current.get("commit", ""),
            "result": "failed" if failed else "ok",
            "problems": self._problems,
            "playbooks": self._playbooks,
            "failures": failures + 1 if failed and isinstance(failures, int) else int(failed),
            "begun": round(begun, 3),
            "ended": round(now, 3),
            "last_fetch": round(now, 3) if self._fetched else self._before.get("last_fetch"),
            "last_success": self._before.get("last_success") if failed else round(now, 3),
            # What was to run once in this boot runs again if it failed.
            "boot_id": first_line(BOOT_ID) if played and not self._boot else self._before.get("boot_id", ""),
        }
        write(self._path, json.dumps(status, indent=1) + "\n", 0o644)
        if self.config["textfile"]:
            write(self.config["textfile"], metrics(status), 0o644)
        return int(failed)


def metrics(status: dict[str, t.Any]) -> str:
    """Return the status as Prometheus reads it from a textfile."""
    rows = [
        ("failed", "Whether the last run failed", int(status["result"] != "ok")),
        ("failures", "How many runs in a row failed", status["failures"]),
        ("last_run_timestamp_seconds", "When the last run ended", status["ended"]),
        ("last_fetch_timestamp_seconds", "When a commit was last fetched and verified", status["last_fetch"] or 0),
        ("last_success_timestamp_seconds", "When a run last succeeded", status["last_success"] or 0),
    ]
    text = "".join(
        f"# HELP podwire_cni_pull_{name} {about}.\n# TYPE podwire_cni_pull_{name} gauge\npodwire_cni_pull_{name} {value}\n"
        for name, about, value in rows
    )
    return text + (
        "# HELP podwire_cni_pull_commit The commit that is in force.\n# TYPE podwire_cni_pull_commit gauge\n"
        f'podwire_cni_pull_commit{{commit="{status["commit"]}"}} 1\n'
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="podwire-cni-pull", description=__doc__.split("\n\n")[0].split(": ")[0])
    parser.add_argument("--config", default=CONFIG, metavar="FILE", help=f"default: {CONFIG}")
    parser.add_argument("--boot", action="store_true", help="run what belongs before the start of the runtimes")
    args = parser.parse_args(argv)
    config = read_json(args.config)
    if not config:
        print(f"podwire-cni-pull: {args.config} is missing or damaged; run the role podwire.cni.pull", file=sys.stderr)
        return 1
    os.umask(0o077)
    os.makedirs(config["state_dir"], mode=0o700, exist_ok=True)
    os.environ["PATH"] = ":".join(filter(None, [config["ansible_path"], os.environ.get("PATH") or os.defpath]))
    # systemd ends a run that takes too long; what it started must end, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with open(os.path.join(config["state_dir"], "lock"), "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another pull is running")
            return 0
        return Pull(config, args.boot).work()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
