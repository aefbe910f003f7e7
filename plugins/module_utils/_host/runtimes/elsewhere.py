# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runtimes whose configuration belongs to a distribution of Kubernetes, which would write it anew."""

from __future__ import annotations

from typing import Sequence

from ..errors import HostError
from .profiles import PROFILES

_HOW = {
    "k3s": (
        "k3s writes it at each start; write networks to {} (cni_conf_dir), or change the template config.toml.tmpl "
        "(config-v3.toml.tmpl with containerd 2) beside it"
    ),
    "rke2": (
        "rke2 writes it at each start; write networks to {} (cni_conf_dir), or change the template config.toml.tmpl "
        "(config-v3.toml.tmpl with containerd 2) beside it"
    ),
    "microk8s": (
        "MicroK8s makes it of /var/snap/microk8s/current/args/containerd-template.toml; write networks to {} "
        "(cni_conf_dir), or change that file"
    ),
    "k0s": "k0s keeps it; write networks to {} (cni_conf_dir), or put a file of your own into /etc/k0s/containerd.d",
    "openshift": "its MachineConfig keeps it; write networks to {} (cni_conf_dir), or change that",
}
_STANDS_FOR = dict.fromkeys(("k3s", "rke2", "microk8s", "k0s"), "containerd")
_STANDS_FOR["openshift"] = "crio"


def managed_elsewhere(name: str, here: Sequence[str]) -> None:
    """Raise HostError ``managed_elsewhere`` if *name* is a distribution's, or one of these is *here* in its place."""
    owners = [name, *(owner for owner in here if _STANDS_FOR.get(owner) == name)]
    owner = next((owner for owner in owners if owner in _HOW), "")
    if owner:
        text = _HOW[owner].format(PROFILES[owner].conf_dir)
        raise HostError(f"{name}: {text}. It was not changed", code="managed_elsewhere")
