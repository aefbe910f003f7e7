# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the networks that are wanted and the directory as it is, to the plan that leads from one to the other."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Optional, Sequence, Set

from .atomic import Attributes
from .bindir import untrusted
from .confdir import ConfFile
from .confforeign import warn_of_cilium
from .confplan import ConfPlan
from .confplugins import check_plugins
from .confput import put
from .confremove import make_room, note_packages, remove, set_aside_others
from .confrules import directory_problems
from .confstate import State
from .conftarget import check_targets, target_of
from .confview import View
from .errors import HostError
from .manifest import Manifest
from .netchange import readable_secret
from .pluginuse import Binaries
from .problems import WARNING, errors_of, place, strict, summary
from .runtimes.confirm import confirm
from .runtimes.effective import Effective
from .secrets import mask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .setup.change import Settings
    from .setup.planner import Setup

DEFAULT_PRIORITY = 10


class Wanted:
    """One network of the request: ``text`` is the rendered list (empty unless ``present``).

    ``restored`` tells that what was before is to come back; then ``name`` may be "", if there is a ``file``.
    """

    __slots__ = ("file", "name", "present", "priority", "restored", "text")

    def __init__(
        self,
        name: str,
        present: bool,
        text: bytes = b"",
        file: Optional[str] = None,
        priority: Optional[int] = None,
        restored: bool = False,
    ) -> None:
        self.name = name
        self.present = present
        self.restored = restored
        self.text = text
        self.file = file
        self.priority = priority

    def default_file(self) -> str:
        return "%02d-%s.conflist" % (DEFAULT_PRIORITY if self.priority is None else self.priority, self.name)


class Request:
    """What the module was asked for. ``levels``: those of ``plugins`` and ``directory`` that apply.

    ``strict``: warnings are errors. ``exclusive``: files of networks that are not asked for go aside.
    ``runtimes``: the profiles whose effective network is to be told, None for those of this host; ``ensure_effective``
    the network that it has to be. ``settings``: what is to be asked of their configurations, if anything.
    """

    def __init__(
        self,
        networks: Sequence[Wanted],
        conf_dir: str,
        bin_dirs: Sequence[str],
        cache_dir: str,
        attributes: Attributes,
        levels: Sequence[str] = ("plugins", "directory"),
        force: bool = False,
        tolerate_missing: bool = False,
        exclusive: bool = False,
        runtimes: Optional[Sequence[str]] = (),
        ensure_effective: Optional[str] = None,
        settings: Optional[Settings] = None,
        strict: bool = False,
    ) -> None:
        self.networks = list(networks)
        self.conf_dir = conf_dir
        self.bin_dirs = list(bin_dirs)
        self.cache_dir = cache_dir
        self.attributes = attributes
        self.levels = set(levels)
        self.force = force
        self.tolerate_missing = tolerate_missing
        self.exclusive = exclusive
        self.runtimes = runtimes
        self.ensure_effective = ensure_effective
        self.settings = settings
        self.strict = strict


def make_plan(request: Request) -> ConfPlan:
    """Return the plan. HostError with all errors (``problems``) if one of them forbids to go on."""
    return _Planner(request).make()


class _Planner:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.state = State(request, Manifest())
        self.plan = self.state.plan
        self.binaries = Binaries(request.bin_dirs, self.state.manifest)

    def make(self) -> ConfPlan:
        request, state = self.request, self.state
        present = [wanted for wanted in request.networks if wanted.present]
        if present and not os.path.isdir(request.conf_dir):
            self.plan.make_directory()
        targets = {wanted.name: target_of(state, wanted) for wanted in present}
        check_targets(state, targets)
        self._plan_steps(present, targets)
        planned = state.planned()
        if "plugins" in request.levels:
            wanted_names = set(targets.values())
            check_plugins(state.plan, self.binaries, [f for f in planned if f.name in wanted_names], request)
        self._test_access(present, targets)
        if "directory" in request.levels:
            before = list(state.files.values())
            view = View(request.conf_dir, before, planned, state.ours_after(), set(targets.values()))
            self.plan.problems.extend(directory_problems(view, self.binaries))
            note_packages(state)
        self.binaries.forget_missing()
        self._try(self._find_effective, planned)
        self._finish()
        return self.plan

    def _try(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a part of the planning; in check mode, what it raises does not hide the rest."""
        try:
            function(*arguments)
        except HostError as error:
            self.plan.refuse(error, self.request.tolerate_missing)

    def _test_access(self, present: Sequence[Wanted], targets: Dict[str, str]) -> None:
        """Warn of secrets that every user may read, and of a directory that others than root may write to."""
        for wanted in present:
            path = self.plan.path(targets[wanted.name])
            self.plan.problems += readable_secret(wanted.text, self.request.attributes.mode, path)
        self.plan.problems += untrusted([self.request.conf_dir])

    def _plan_steps(self, present: Sequence[Wanted], targets: Dict[str, str]) -> None:
        """Plan what is to be done: removals last, so that a runtime is not left without any network.

        Except where what goes stands in the way.
        """
        state = self.state
        texts = {wanted.name: wanted.text for wanted in present}
        absent = [wanted for wanted in self.request.networks if not wanted.present and not wanted.restored]
        in_the_way = [w for w in absent if any(file.name in targets.values() for file in state.own_files(w.name))]
        for wanted in in_the_way:
            self._try(remove, state, wanted)
        if self.request.exclusive:
            self._try(make_room, state, present, targets, texts)
        for wanted in present:
            self._try(put, state, wanted, targets[wanted.name])
        kept: Set[str] = set(targets.values())
        kept |= self._restore()
        for wanted in absent:
            if wanted not in in_the_way:
                self._try(remove, state, wanted)
        if self.request.exclusive:
            self._try(set_aside_others, state, kept, texts)
        warn_of_cilium(state)

    def _restore(self) -> Set[str]:
        """Plan to bring back what was before; return the names of the files that then stay."""
        restored = [wanted for wanted in self.request.networks if wanted.restored]
        if not restored:
            return set()
        # Seldom asked for, so it is compiled only then.
        from .confrestore import restore

        return set().union(*(restore(self.state, wanted) for wanted in restored))

    def _finish(self) -> None:
        problems = mask(strict(self.plan.problems) if self.request.strict else self.plan.problems)
        errors = errors_of(problems)
        if errors:
            error = HostError(summary(problems), code=errors[0]["code"], problems=problems)
            self.plan.refuse(error, self.request.tolerate_missing)
        self.plan.networks = self.state.reports()
        self.plan.problems = problems
        for entry in problems:
            if entry["level"] == WARNING:
                self.plan.warn(entry["code"], place(entry) + entry["message"])

    def _find_effective(self, files: Sequence[ConfFile]) -> None:
        request = self.request
        setup = self._setup(request.settings) if request.settings else None
        effective = Effective(
            request.runtimes,
            request.conf_dir,
            request.bin_dirs,
            files,
            self.state.manifest,
            request.tolerate_missing,
            setup.prepare if setup else None,
        )
        self.plan.effective = mask(effective.rows())
        restarting = [row["runtime"] for row in self.plan.configured if row["restart"]]
        self.plan.confirm = lambda: confirm(effective, restarting)
        if request.ensure_effective is not None:
            problems = effective.ensure(request.ensure_effective)
            if setup and not problems:
                problems = setup.not_loaded(request.ensure_effective)
            self.plan.problems.extend(problems)

    def _setup(self, settings: Settings) -> Setup:
        # Most calls leave the runtimes as they are; their code is not compiled then.
        from .setup.planner import Setup

        return Setup(self.plan, settings, self.request.tolerate_missing)
