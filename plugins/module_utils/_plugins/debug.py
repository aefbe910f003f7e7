# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""podwire-debug: writes down each call of a chain, and hands the result on.

Configuration: `file` (default /var/log/podwire-cni/debug.log), `maxSize` in bytes (1 MiB), after which the file is
renamed to `FILE.1`, and so on up to `keep` (3) old files. Each line is a JSON object: time, command, environment,
configuration, result or error. Secrets are masked. A call never fails because it cannot be written down.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import time

from ..libcni import gojson
from ..libcni.skel import plugin_main
from .chained import bad_config, hand_on, previous, setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    from ..libcni.skel import Callback, CmdArgs

ABOUT = "podwire-debug: writes down each call of a chain of CNI plugins"
DEFAULT_FILE = "/var/log/podwire-cni/debug.log"
# No call waits longer for others that write.
_PATIENCE = 2.0


class _Log:
    """The file and its rotation."""

    def __init__(self, config: t.Mapping[str, t.Any]) -> None:
        self.path = setting(config, "file", DEFAULT_FILE)
        self.size = setting(config, "maxSize", 1024 * 1024)
        self.keep = setting(config, "keep", 3)
        if not os.path.isabs(self.path) or os.path.normpath(self.path) != self.path:
            raise bad_config(f"file: expected an absolute path without . and .., found {self.path!r}")
        if self.size < 4096 or not 0 <= self.keep <= 100:
            raise bad_config("maxSize must be at least 4096, and keep a number from 0 to 100")

    def append(self, line: bytes) -> None:
        """Append a line. Raises OSError, HostError."""
        from .._host.trust import check_trusted

        folder = os.path.dirname(self.path)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        check_trusted(folder)
        lock = self._open(f"{self.path}.lock")
        try:
            _wait_for(lock)
            self._rotate(len(line))
            log = self._open(self.path)
            try:
                os.write(log, line)
            finally:
                os.close(log)
        finally:
            os.close(lock)

    def _open(self, path: str) -> int:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def _rotate(self, more: int) -> None:
        try:
            here = os.stat(self.path, follow_symlinks=False).st_size
        except FileNotFoundError:
            return
        if here + more <= self.size:
            return
        names = [self.path, *(f"{self.path}.{number}" for number in range(1, self.keep + 1))]
        if not self.keep:
            os.unlink(self.path)
        for old, new in reversed(list(zip(names, names[1:]))):
            with contextlib.suppress(FileNotFoundError):
                os.replace(old, new)


def _wait_for(lock: int) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def _line(command: str, args: CmdArgs, result: t.Any, error: str) -> bytes:
    from .._host.secrets import published

    now = time.time()
    seen = {
        "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z",
        "command": command,
        "network": args.config.get("name"),
        "containerID": args.container_id,
        "ifname": args.ifname,
        "netns": args.netns,
        "environment": dict(os.environ),
        "config": args.config,
        **({"error": error} if error else {"result": result}),
    }
    return gojson.dumps(published(seen)) + b"\n"


def _write_down(log: _Log, command: str, args: CmdArgs, result: t.Any, error: str) -> None:
    try:
        log.append(_line(command, args, result, error))
    except Exception as exc:  # noqa: BLE001  # nothing here may break a pod
        sys.stderr.write(f"podwire-debug: cannot write {log.path}: {exc}\n")


def _callback(command: str) -> Callback:
    def run(args: CmdArgs) -> None:
        try:
            log = _Log(args.config)
        except Exception as exc:
            if command != "DEL":
                raise
            sys.stderr.write(f"podwire-debug: {exc}\n")
            return
        result = None
        try:
            if command in ("ADD", "CHECK"):
                result = previous(args)
        except Exception as exc:
            _write_down(log, command, args, None, str(exc))
            raise
        _write_down(log, command, args, result, "")
        if command == "ADD":
            hand_on(result or {})

    return run


def main() -> None:
    """Be the plugin."""
    plugin_main(
        add=_callback("ADD"),
        check=_callback("CHECK"),
        delete=_callback("DEL"),
        gc=_callback("GC"),
        status=_callback("STATUS"),
        about=ABOUT,
        error_version=True,
    )


if __name__ == "__main__":
    main()
