# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``/etc/netns/NAME/resolv.conf``, which ``ip netns exec NAME`` mounts: the ``dns`` of a result, on request.

The first line of a file says for which attachment it was written, and has the digest of the rest. A file without such a
line, or with another content, is somebody else's, and is neither changed nor removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from functools import partial
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Tuple

from ..errors import HostError
from ..files import Attributes, Directory, make_directory, write
from ..netns import NETNS_ETC, netns_name
from ..plan import DISRUPTIVE, SAFE, Step
from ..trust import check_trusted
from .outcome import ADD, DELETE, RENEW, AttachPlan, Outcome
from .request import PRESENT

_FILE = "resolv.conf"
_MARK = re.compile(rb"# Written by podwire\.cni for (\S+), sha256 ([0-9a-f]{64})(, with its directory)?\n")
_LARGEST = 1 << 16
# What a line of the file can carry.
_WORD = re.compile(r"[!-~]{1,253}")


class Found(NamedTuple):
    """A file as it is: ``text`` is None if there is none, ``key`` "" if it is not ours, and ``made`` whether its
    directory was made for it. ``edited``: it was ours.
    """

    text: Optional[bytes]
    key: str = ""
    made: bool = False
    edited: bool = False


def content(dns: Any) -> bytes:
    """Return the lines for the ``dns`` of a result, b"" for none. What a line cannot carry is left out."""
    dns = dns if isinstance(dns, Mapping) else {}

    def words(name: str) -> List[str]:
        values = dns.get(name)
        found = values if isinstance(values, list) else [values]
        return [word for word in found if isinstance(word, str) and _WORD.fullmatch(word)]

    lines = ["domain " + word for word in words("domain")[:1]]
    lines += ["nameserver " + word for word in words("nameservers")]
    lines += [f"{name} {' '.join(words(name))}" for name in ("search", "options") if words(name)]
    return "".join(line + "\n" for line in lines).encode("ascii")


def read(path: str) -> Found:
    """Return the file *path*. What cannot be read, or is no regular file, is not ours."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return Found(None)
    except OSError:
        return Found(b"")
    with os.fdopen(fd, "rb") as stream:
        text = stream.read(_LARGEST) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    mark = _MARK.match(text)
    if mark is None:
        return Found(text)
    key, digest = mark[1].decode("utf-8", "replace"), mark[2].decode("ascii")
    if hashlib.sha256(text[mark.end() :]).hexdigest() != digest:
        return Found(text, edited=True)
    return Found(text, key, mark[3] is not None)


class ResolvConf:
    """Adds the steps for these files to a plan."""

    def __init__(self, plan: AttachPlan) -> None:
        self._plan = plan
        self._writes: List[Tuple[Outcome, str]] = []
        self._removals: List[Tuple[Outcome, str]] = []

    def look(self, outcome: Outcome) -> None:
        """Find out what the attachment needs. Raises HostError ``unsafe_permissions`` where it needs a file."""
        wanted = outcome.wanted
        asked = wanted.state == PRESENT and wanted.resolv_conf
        here = netns_name(wanted.netns)
        names = {here, netns_name(outcome.attached.netns) if outcome.attached else ""} - {""}
        for name in sorted(names):
            path = os.path.join(NETNS_ETC, name, _FILE)
            if asked and name == here:
                check_trusted(os.path.dirname(path) if os.path.isdir(os.path.dirname(path)) else NETNS_ETC)
                self._writes.append((outcome, path))
            else:
                self._removals.append((outcome, path))

    def add(self) -> None:
        """Add the steps: those that remove a file first, because another attachment may write it."""
        removed = set()
        for outcome, path in self._removals:
            found = read(path)
            if outcome.failed or (found.key != str(outcome.key) and not found.edited):
                continue
            if found.edited:
                self._leave(outcome, path)
            else:
                removed.add(path)
                self._remove(outcome, path, found)
        for outcome, path in self._writes:
            if outcome.failed:
                continue
            found = read(path)
            if found.text is not None and found.key != str(outcome.key) and path not in removed:
                self._leave(outcome, path)
            elif outcome.todo in (ADD, RENEW):
                self._step(outcome, path, (found, "known after the ADD"), partial(self._put, outcome, path), SAFE)
            else:
                self._keep(outcome, path, Found(None) if path in removed else found)

    def _keep(self, outcome: Outcome, path: str, found: Found) -> None:
        """Compare the file of an attachment that stays."""
        wanted = _wanted(outcome)
        if not wanted and found.text is not None:
            self._remove(outcome, path, found)
        elif wanted and (found.text is None or found.text.partition(b"\n")[2] != wanted):
            action = partial(self._put, outcome, path)
            self._step(outcome, path, (found, wanted.decode("ascii")), action, SAFE)

    def _remove(self, outcome: Outcome, path: str, found: Found) -> None:
        # A step that detaches is left out together with this one.
        kind = DISRUPTIVE if outcome.todo == DELETE else SAFE
        self._step(outcome, path, (found, None), partial(self._take, outcome, path), kind)

    def _step(
        self,
        outcome: Outcome,
        path: str,
        states: Tuple[Found, Optional[str]],
        action: Callable[[], None],
        step_class: str,
    ) -> None:
        if outcome.action == "none":
            outcome.action, outcome.reason = "updated", "resolv_conf"
        found, after = states
        before = None if found.text is None else found.text.partition(b"\n")[2].decode("utf-8", "replace")
        verb = "is not wanted" if after is None else "differs" if found.text else "is missing"
        step = Step(
            "resolv_conf",
            path,
            step_class,
            before,
            after,
            partial(_failing, outcome, action),
            item=outcome.item,
            lane=outcome.key.container_id,
            reason=f"{_FILE} of {outcome.key} {verb}",
        )
        self._plan.add(step)

    def _leave(self, outcome: Outcome, path: str) -> None:
        text = f"{outcome.key}: {path} is not what was written for this attachment, so it stays as it is"
        self._plan.note(outcome, "resolv_conf_foreign", text)

    def _put(self, outcome: Outcome, path: str) -> None:
        found, wanted = read(path), _wanted(outcome)
        if found.text is not None and found.key != str(outcome.key):
            self._leave(outcome, path)
            return
        if not wanted:
            self._take(outcome, path)
            return
        folder = os.path.dirname(path)
        made = found.made if found.text is not None else not os.path.isdir(folder)
        make_directory(folder, 0o755)
        digest = hashlib.sha256(wanted).hexdigest()
        mark = f"# Written by podwire.cni for {outcome.key}, sha256 {digest}{', with its directory' if made else ''}\n"
        with Directory(folder) as directory:
            write(directory, _FILE, mark.encode("utf-8") + wanted, Attributes(0o644))

    def _take(self, outcome: Outcome, path: str) -> None:
        found = read(path)
        if found.key != str(outcome.key):
            return
        folder = os.path.dirname(path)
        with Directory(folder) as directory:
            directory.remove(_FILE)
        if found.made:
            # Another program may have put files there.
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def _wanted(outcome: Outcome) -> bytes:
    result = outcome.result if outcome.result is not None or outcome.attached is None else outcome.attached.result
    return content((result or {}).get("dns"))


def _failing(outcome: Outcome, action: Callable[[], None]) -> None:
    try:
        action()
    except OSError as error:
        failure = HostError(f"{outcome.key}: cannot write its {_FILE}: {error.strerror}", code="write_failed")
        outcome.fail(failure)
        raise failure from error
    except HostError as error:
        outcome.fail(error)
        raise
