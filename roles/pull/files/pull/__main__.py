# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Brings this host to what a verified commit of a git repository says: python3 DIRECTORY [--config FILE] [--boot]

Fetches a branch, verifies the signature of its newest commit and that it is for this repository and branch, and only
then writes its files. A commit that does not hold changes nothing: the one before stays in force and its playbooks run.
The status file tells what happened.
At boot, before the runtimes start, the commit that is in force is not replaced: nothing waits for the network then.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request

from common import LARGEST, Problem, first_line, last_words, read_json, run, write
from repository import Repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

CONFIG = "/etc/podwire/pull.json"
MACHINE_ID, BOOT_ID = "/etc/machine-id", "/proc/sys/kernel/random/boot_id"
# After failures, a start by the timer waits: the interval, twice of it, and so on, up to this many.
LONGEST_WAIT = 16


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
        if self._waits() or (self._boot and not self.config["boot_playbooks"]):
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
        except (Problem, OSError) as error:
            self._tell(error)
        if not self._boot:
            self._push()
        return self._note(begun)

    def _waits(self) -> bool:
        """Return whether a start by the timer comes too soon after failures."""
        failures, last = self._before.get("failures"), self._before.get("ended")
        if not isinstance(failures, int) or not isinstance(last, (int, float)) or failures < 1:
            return False
        # If only the fetch failed, drift is repaired as often as before.
        if self._before.get("played") is True:
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
        except (Problem, OSError) as error:
            self._tell(error)
            if getattr(error, "code", "") == "not_fetched" and self._repository.current:
                self._judge_age()

    def _judge_age(self) -> None:
        """A fetch that fails now and then is no reason to wake somebody; a commit that may be far behind is one."""
        last, most = self._before.get("last_fetch"), self.config["max_age"]
        # A time in the future tells nothing.
        if not isinstance(last, (int, float)) or not 0 <= time.time() - last <= most:
            text = f"nothing was fetched in the last {most:g} seconds (cni_pull_max_age)"
            self._tell(Problem("fetch_overdue", f"{text}; check the git server and the way to it"))

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
        words = ["ansible-playbook", "--connection", "local", "--inventory", config["inventory"]]
        words += ["--limit", config["name"]]
        words += ["--extra-vars", json.dumps({"ansible_python_interpreter": "/usr/bin/python3"}), "--", playbook]
        print(f"{playbook} of commit {current['commit'][:12]}", flush=True)
        try:
            done = run(words, config["run_timeout"], cwd=current["tree"], env=self._environment(current))
        except (Problem, OSError) as error:
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
        target = self.config["push"]
        path = os.path.join(self.config["report_dir"], "hosts", f"{self.config['name']}.json")
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
        except (Problem, OSError) as error:
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

    def _tell(self, error: Problem | OSError) -> None:
        problem = error if isinstance(error, Problem) else Problem("system", in_words(error))
        # Everybody on the host can read the status file, and a URL may have a password.
        message = re.sub(r"://[^/@\s]+@", "://", str(problem))
        print(f"podwire-cni-pull: {message} [{problem.code}]", file=sys.stderr, flush=True)
        self._problems.append({"code": problem.code, "message": message})

    def _note(self, begun: float) -> int:
        """Write the status, last, so that its age tells that a host has not been reached for long."""
        current, now = self._repository.current, time.time()
        played = bool(self._playbooks) and not any(one["status"] for one in self._playbooks)
        failed = not played or any(one["code"] not in ("not_fetched", "not_pushed") for one in self._problems)
        failures = self._before.get("failures", 0)
        status = {
            "name": self.config["name"],
            "branch": self.config["branch"],
            "commit": current.get("commit", ""),
            "result": "failed" if failed else "ok",
            "problems": self._problems,
            "playbooks": self._playbooks,
            "played": played,
            "failures": failures + 1 if failed and isinstance(failures, int) else int(failed),
            "begun": round(begun, 3),
            "ended": round(now, 3),
            "last_fetch": round(now, 3) if self._fetched else self._before.get("last_fetch"),
            "last_success": self._before.get("last_success") if failed else round(now, 3),
            # What was to run once in this boot runs again if it failed.
            "boot_id": first_line(BOOT_ID) if played and not self._boot else self._before.get("boot_id", ""),
        }
        if self.config["textfile"]:
            try:
                write(self.config["textfile"], metrics(status), 0o644)
            except OSError as error:
                text = f"the metrics were not written: {in_words(error)}"
                self._tell(Problem("no_textfile", f"{text}; create the directory, or change cni_pull_textfile"))
        write(self._path, json.dumps(status, indent=1) + "\n", 0o644)
        return int(failed)


def in_words(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


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
        f"# HELP podwire_cni_pull_{name} {about}.\n"
        f"# TYPE podwire_cni_pull_{name} gauge\n"
        f"podwire_cni_pull_{name} {value}\n"
        for name, about, value in rows
    )
    return text + (
        "# HELP podwire_cni_pull_commit The commit that is in force.\n# TYPE podwire_cni_pull_commit gauge\n"
        f'podwire_cni_pull_commit{{commit="{status["commit"]}"}} 1\n'
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="podwire-cni-pull", description=__doc__.partition("\n\n")[0].partition(": ")[0]
    )
    parser.add_argument("--config", default=CONFIG, metavar="FILE", help=f"default: {CONFIG}")
    parser.add_argument("--boot", action="store_true", help="run what belongs before the start of the runtimes")
    args = parser.parse_args(argv)
    config = read_json(args.config)
    if not config:
        print(f"podwire-cni-pull: {args.config} is missing or damaged; run the role podwire.cni.pull", file=sys.stderr)
        return 1
    try:
        return pull(config, args.boot)
    except OSError as error:
        # Not even the status file can be written.
        print(f"podwire-cni-pull: this run is not in the status file: {in_words(error)}", file=sys.stderr)
        return 1


def pull(config: dict[str, t.Any], boot: bool) -> int:
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
        return Pull(config, boot).work()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
