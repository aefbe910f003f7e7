# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A real containerd, from its unpacked package, with a root, a state, a socket and a configuration of its own."""

from __future__ import annotations

import glob
import os
import re
import subprocess
import time

import image
from cri import Cri

# Nothing touches control groups: the OCI runtime is crun, told to leave them alone.
CRI_CONFIG = f"""
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{image.NAME}"
# What lacks CAP_SYS_RESOURCE cannot lower the score.
restrict_oom_score_adj = true
disable_cgroup = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "%s"
"""
CONFIG = """
version = 2
root = "{directory}/root"
state = "{directory}/state"
[grpc]
address = "{directory}/socket"
[debug]
level = "debug"
{cri}
[plugins."io.containerd.grpc.v1.cri".cni]
conf_dir = "{conf_dir}"
bin_dir = "/opt/cni/bin"
max_conf_num = {networks}
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.other]
runtime_type = "io.containerd.runc.v2"
cni_conf_dir = "{conf_dir}-other"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.other.options]
BinaryName = "{crun}"
"""
CRUN_SCRIPT = """#!/bin/sh
# Newer containerds name versions of the specification that this crun does not know, but nothing that is new in them.
for word in "$@"; do
  [ ! -f "$word/config.json" ] || sed -i 's/"ociVersion":"[^"]*"/"ociVersion":"1.0.2"/' "$word/config.json"
done
LD_LIBRARY_PATH={libraries} exec {packages}/usr/bin/crun --cgroup-manager=disabled "$@"
"""
_LOAD = 'msg="receiving change event from cni conf dir'
_LOAD_ERROR = re.compile('msg="failed to reload cni configuration .*" error="(.*)"')


def crun_script(packages):
    """Return a program that runs the crun of *packages*, which needs no control groups and finds its libraries."""
    libraries = ":".join(
        sorted(glob.glob(packages + "/usr/lib/*-linux-gnu") + glob.glob(packages + "/lib/*-linux-gnu"))
    )
    return CRUN_SCRIPT.format(packages=packages, libraries=libraries)


class Containerd:
    """*packages* is where containerd is unpacked, *conf_dir* what it reads, *networks* its max_conf_num."""

    def __init__(self, packages, directory, conf_dir, networks=1):
        self._packages = packages
        self._directory = directory
        self.networks = networks
        self._conf_dir = conf_dir
        self._process = None
        self.cri = None
        said = subprocess.run([packages + "/usr/bin/containerd", "--version"], stdout=subprocess.PIPE, check=True)
        self.version = re.search(r" v?(\d+\.\d+\.\d+)", said.stdout.decode()).group(1)
        self.profile = "containerd-" + self.version.rpartition(".")[0]

    def start(self, crun="runc"):
        """Start it, and wait until it answers. Only pods need *crun*, the path of the OCI runtime."""
        os.makedirs(self._directory)
        # An overlay, which a container's root is, cannot lie on an overlay.
        subprocess.run(["mount", "-t", "tmpfs", "podwire-containerd", self._directory], check=True)
        config = self._directory + "/config.toml"
        with open(config, "w") as stream:
            stream.write(
                CONFIG.format(
                    directory=self._directory,
                    conf_dir=self._conf_dir,
                    networks=self.networks,
                    cri=CRI_CONFIG % crun,
                    crun=crun,
                )
            )
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [self._packages + "/usr/bin/containerd", "--config", config], stdout=log, stderr=log
            )
        deadline = time.monotonic() + 60
        while not os.path.exists(self._directory + "/socket"):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("containerd %s does not start:\n%s" % (self.version, self.log()[-4000:]))
            time.sleep(0.05)
        self.cri = Cri(self._directory + "/socket")
        self.cri.call("Version")

    def stop(self):
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            subprocess.run(["umount", "--lazy", self._directory], check=True)
            os.rmdir(self._directory)

    def import_image(self, archive):
        subprocess.run(
            [
                *(self._packages + "/usr/bin/ctr", "--address", self._directory + "/socket"),
                *("--namespace", "k8s.io", "images", "import", archive),
            ],
            stdout=subprocess.DEVNULL,
            check=True,
        )

    @property
    def _log(self):
        return self._directory + "/log"

    def log(self, start=0):
        with open(self._log, "rb") as stream:
            stream.seek(start)
            return stream.read().decode("utf-8", "replace")

    def log_size(self):
        return os.stat(self._log).st_size

    def loads(self, start):
        """Return how often it has loaded its directory since the log had the size *start*, and the errors."""
        log = self.log(start)
        return log.count(_LOAD), _LOAD_ERROR.findall(log)
