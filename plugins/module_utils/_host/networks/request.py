# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The request of ``cni_conf``. The controller uses the checks of single options, too."""

from __future__ import annotations

from typing import Optional, Sequence

from ..errors import HostError
from ..files import Attributes
from ..paths import file_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtimes.dropins import RuntimeSettings

DEFAULT_PRIORITY = 10


def read_file_name(name: Optional[str], option: str) -> Optional[str]:
    """Return the name of a network's file; it must be plain, not hidden, and end in ``.conflist``."""
    if name is None:
        return None
    file_name(name, option)
    if name.startswith(".") or not name.endswith(".conflist"):
        raise HostError(
            f"{option}: {name!r} cannot hold a network; the name must end in .conflist and not begin with a dot, such "
            "as '10-apps.conflist'",
            code="bad_file_name",
        )
    return name


def check_priority(priority: Optional[int], option: str) -> Optional[int]:
    """Return *priority* if it has at most two digits, so that the order as text is the order as numbers."""
    if priority is not None and not 0 <= priority <= 99:
        raise HostError(
            f"{option}: {priority} is not from 0 to 99; runtimes compare file names as text, so 100- would come before "
            "20-",
            code="bad_priority",
        )
    return priority


class WantedNetwork:
    """One network of the request: ``text`` is the rendered conflist (empty unless ``present``).

    ``restored`` asks for what was there before; then ``name`` may be "" if there is a ``file``.
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
        return f"{DEFAULT_PRIORITY if self.priority is None else self.priority:02d}-{self.name}.conflist"


class ConfRequest:
    """All options of the module. ``levels``: those of ``plugins`` and ``directory`` that apply.

    ``strict``: warnings are errors. ``exclusive``: files of networks that are not requested are set aside.
    ``runtimes``: the profiles whose effective network is reported, None for those of this host; ``ensure_effective``:
    the network that they must use. ``settings``: the desired settings of their configurations, if any.
    """

    def __init__(
        self,
        networks: Sequence[WantedNetwork],
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
        settings: Optional[RuntimeSettings] = None,
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
