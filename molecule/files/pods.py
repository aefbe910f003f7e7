# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Pod sandboxes of the containerd of a virtual machine, by CRI; runs beside Ansible and prints JSON.

    pods.py SSH run NAME [NETWORKS]    tell which networks are loaded, run a pod on them, and tell what it got; NETWORKS
                                       is its annotation k8s.v1.cni.cncf.io/networks
    pods.py SSH fail NAME NETWORKS     run a pod that cannot start; tell what containerd says
    pods.py SSH remove                 stop and remove all pods; tell which are left

SSH is the command that reaches the machine as a user who may write to containerd's socket. The socket is forwarded for
as long as the call lasts: an emulated machine is too slow to run a client of its own each time.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "real" / "runtimes"))

from cri import Cri, CriError

SOCKET = "/run/containerd/containerd.sock"
# Three emulated machines, beside whatever else runs here.
TIMEOUT = 300.0


@contextlib.contextmanager
def forwarded(ssh: str):
    """Give the path of a socket here that leads to that of containerd."""
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory, "socket")
        options = ["-N", "-o", "ExitOnForwardFailure=yes", "-L", f"{here}:{SOCKET}"]
        with subprocess.Popen([*shlex.split(ssh), *options], stdin=subprocess.DEVNULL) as process:
            try:
                deadline = time.monotonic() + TIMEOUT
                while not here.exists():
                    if process.poll() is not None or time.monotonic() > deadline:
                        sys.exit("ssh has not forwarded containerd's socket")
                    time.sleep(0.05)
                yield str(here)
            finally:
                process.terminate()


def annotations(networks: str) -> dict:
    return {"k8s.v1.cni.cncf.io/networks": networks} if networks else {}


def run(cri: Cri, name: str, networks: str = "") -> dict:
    """Run a pod sandbox and return what it has got, of whom."""
    loaded, error = cri.status()
    if error:
        raise CriError(error)
    pod = cri.run_pod(name, "/var/log/pods", annotations=annotations(networks))
    addresses, result = cri.pod(pod)
    interfaces = {
        interface: [address["IP"] for address in made["IPConfigs"]]
        for interface, made in result["Interfaces"].items()
        # Only those in the pod have addresses for it; the rest are the machine's ends, and lo.
        if made.get("IPConfigs") and interface != "lo"
    }
    return {
        "loaded": [network for network, _source in loaded],
        "id": pod,
        "addresses": addresses,
        "interfaces": interfaces,
    }


def fail(cri: Cri, name: str, networks: str) -> dict:
    """Run a pod sandbox that cannot start, and return the error."""
    try:
        cri.run_pod(name, "/var/log/pods", annotations=annotations(networks))
    except CriError as error:
        return {"error": str(error)}
    sys.exit(f"the pod {name} runs")


def remove(cri: Cri) -> dict:
    """Stop and remove all pod sandboxes, and return the ids of those that are left."""
    for pod in cri.pods():
        cri.stop_pod(pod)
        cri.remove_pod(pod)
    return {"left": cri.pods()}


def main(ssh: str, verb: str, *words: str) -> None:
    with forwarded(ssh) as socket:
        cri = Cri(socket, TIMEOUT)
        print(json.dumps({"run": run, "fail": fail, "remove": remove}[verb](cri, *words)))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except CriError as error:
        sys.exit(str(error))
