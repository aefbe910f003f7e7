# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning of ``cni_smoke``: which networks are tried, and what an interrupted run left to be taken back."""

from __future__ import annotations

import os
from functools import partial
from typing import List

from ..attachments.cache import CachedAttachment, read_cache, remove_files
from ..attachments.networks import Networks
from ..attachments.records import check_cache_dir
from ..attachments.verbs import Verbs
from ..confdir import ConfFile
from ..errors import HostError
from ..firewall.tools import require_tools
from ..plan import SAFE, Step
from ..trust import check_trusted
from .choice import choose, load, reason_against
from .outcome import TAKE_BACK, SmokePlan, SmokeSettings, Trial
from .trial import Trier

# Below cache_dir: attachments that nobody but this module knows, so that no other takes them for somebody's.
_CACHE = "smoke"


class SmokePlanner:
    """Makes one plan. Reads files and asks plugins (VERSION); changes nothing."""

    def __init__(self, settings: SmokeSettings) -> None:
        self._settings = settings
        self._cache_dir = os.path.join(settings.cache_dir, _CACHE)
        self._networks = Networks(settings.conf_dir, settings.bin_dirs)
        self._verbs = Verbs(settings.bin_dirs, self._cache_dir, settings.timeout)
        self._plan = SmokePlan()

    def make(self) -> SmokePlan:
        """Return the plan.

        Raises HostError ``missing_network``, ``unsafe_permissions``, and what reading the directories raises.
        """
        check_trusted(self._settings.conf_dir)
        check_cache_dir(self._settings.cache_dir)
        check_cache_dir(self._cache_dir)
        trier = Trier(self._settings, self._cache_dir, self._verbs, self._plan)
        for entry in read_cache(self._cache_dir).entries:
            self._add_take_back(trier, entry)
        files, missing = choose(self._settings.conf_dir, self._settings.networks)
        if missing:
            self._tell_missing(missing)
        elif not files and not os.path.isdir(self._settings.conf_dir):
            self._plan.warn(
                "missing_conf_dir", f"there is no directory {self._settings.conf_dir}, so no network to try"
            )
        for file in files:
            trial = self._trial(file)
            self._plan.trials.append(trial)
            if not (trial.error or trial.reason):
                self._plan.add(
                    Step("try", trial.network, SAFE, None, None, partial(trier.run, trial), item=trial.network)
                )
        if self._plan.steps:
            self._plan.finish = partial(self._finish, trier)
        return self._plan

    def _tell_missing(self, names: List[str]) -> None:
        text = f"no file in {self._settings.conf_dir} configures {', '.join(names)}; write one with cni_conf"
        if not self._settings.check_mode:
            raise HostError(text, code="missing_network")
        self._plan.warn("missing_network", text)

    def _trial(self, file: ConfFile) -> Trial:
        trial = Trial(file.network or "", file.path)
        try:
            trial.config = load(file)
            against = reason_against(trial.config) if self._settings.networks is None else None
            if against:
                trial.skip(*against)
            else:
                self._networks.test_plugins(trial.config)
                plugins = [plugin.network for plugin in trial.config.plugins]
                require_tools(f"cannot try {trial.network}", plugins, {}, self._settings.bin_dirs)
        except HostError as error:
            if self._settings.check_mode and error.code in ("missing_plugin", "missing_tool"):
                self._plan.warn(error.code, error.msg)
            else:
                trial.fail(error)
        return trial

    # ---- what a run that was killed has left

    def _add_take_back(self, trier: Trier, entry: CachedAttachment) -> None:
        target = str(entry.key or entry.name)
        before = {"ips": entry.ips, "files": [file.path for file in entry.files]}
        self._plan.add(
            Step(
                TAKE_BACK, target, SAFE, before, None, partial(self._take_back, trier, entry), item=(TAKE_BACK, target)
            )
        )

    def _take_back(self, trier: Trier, entry: CachedAttachment) -> None:
        try:
            if entry.attached is not None:
                trier.take_back(entry.attached, entry.record)
            remove_files(entry.files)
        except HostError as error:
            self._plan.warn(error.code, f"what an earlier run left could not be taken back: {error.msg}")
            raise

    def _finish(self, trier: Trier) -> None:
        trier.finish()
        for folder in ("results", "podwire", ""):
            try:
                os.rmdir(os.path.join(self._cache_dir, folder))
            except OSError:
                # What could not be taken back stays, so that the next run can try.
                continue
