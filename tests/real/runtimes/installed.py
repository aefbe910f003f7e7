# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a real containerd and a real podman usable as if installed, as root in a namespace of tests/private.sh.

    installed.py install PACKAGES…   as if the packages unpacked there were installed, the last of each program; both
                                     runtimes read /etc/cni/net.d
    installed.py start               start containerd, wait until it answers
    installed.py stop [SIGKILL]      end it; its containers go on
    installed.py pod NAME            run a pod sandbox by CRI and print its id
    installed.py remove-pod ID
    installed.py container NAME      run a container by `ctr run --cni`
    installed.py remove-container NAME
    installed.py uninstall           end everything, and undo the installation

podman is called as `podman`, `ctr` as `ctr`, both with the image localhost/podwire:1, whose command sleeps.
"""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time

import image
from containerd import CRI_CONFIG, crun_script
from cri import Cri, CriError

STATE = "/run/podwire-runtimes"
PACKAGES = STATE + "/packages"
CRUN = STATE + "/crun"
ARCHIVE = STATE + "/image.tar"
PID = STATE + "/containerd.pid"
LOG = STATE + "/containerd.log"
SOCKET = "/run/containerd/containerd.sock"
WAIT = 60.0
# Where the runtimes keep their configuration and state, and where CNI plugins do not look.
OWN = (
    *("/etc/containerd", "/etc/containers", "/run/containerd", "/run/containers", "/run/crun", "/run/libpod"),
    *("/var/lib/containerd", "/var/lib/containers"),
)

PODMAN_CONFIG = f"""
[containers]
cgroups = "disabled"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "crun"
[engine.runtimes]
crun = ["{CRUN}"]
[network]
network_backend = "cni"
cni_plugin_dirs = ["/opt/cni/bin"]
"""
# Newer containerds would prefer the plugins of Debian, which the machine may have.
CNI_CONFIG = '[plugins."io.containerd.grpc.v1.cri".cni]\nbin_dir = "/opt/cni/bin"\n'
FILES = {
    "/etc/containerd/config.toml": "version = 2\n" + CRI_CONFIG % CRUN,
    "/etc/containers/containers.conf": PODMAN_CONFIG,
    "/etc/containers/policy.json": '{"default": [{"type": "insecureAcceptAnything"}]}\n',
    "/etc/containers/storage.conf": '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\n'
    'graphroot = "/var/lib/containers/storage"\n',
}


def command(*words):
    subprocess.run(words, check=True)


def output(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout.decode()


def succeeds(*words):
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def wait_for(what, condition):
    deadline = time.monotonic() + WAIT
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"waited {WAIT:.0f} s for {what}")
        time.sleep(0.05)


# --- installation


def install(*unpacked):
    os.makedirs(STATE)
    # An overlay cannot lie on an overlay, as which /run and /var/lib are there; and root runs only what root owns.
    command("mount", "-t", "tmpfs", "-o", "mode=0755", "podwire-runtimes", STATE)
    # Packages of before the merge of / and /usr have a part in /.
    for packages, place in itertools.product(unpacked, ("bin", "usr/bin", "lib", "usr/lib")):
        source = os.path.join(packages, place)
        if os.path.isdir(source):
            target = f"{PACKAGES}/usr/{os.path.basename(place)}"
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    command("mount", "-t", "overlay", "-o", f"lowerdir={PACKAGES}/usr:/usr", "podwire-runtimes", "/usr")
    for path in OWN:
        os.makedirs(path, exist_ok=True)
        command("mount", "-t", "tmpfs", "-o", "mode=0711", "podwire-runtimes", path)
    # crun wants to see some control groups there.
    command("mount", "-t", "cgroup2", "podwire-runtimes", "/sys/fs/cgroup")
    for path, text in [*FILES.items(), (CRUN, crun_script(PACKAGES))]:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as stream:
            stream.write(text + (CNI_CONFIG if len(unpacked) > 1 and path.endswith("/config.toml") else ""))
    os.chmod(CRUN, 0o755)
    image.write(ARCHIVE, PACKAGES + "/usr/bin/busybox")
    output("podman", "load", "--quiet", "--input", ARCHIVE)


def container(name):
    command("ctr", "run", "--detach", "--cni", "--runc-binary", CRUN, image.NAME, name)


def remove_container(name):
    """Remove a container of ctr's. Its network stays as it is: ctr does nothing about that."""
    if name in output("ctr", "tasks", "list", "--quiet").split():
        # The task may have ended by itself.
        succeeds("ctr", "tasks", "kill", "--signal", "SIGKILL", name)
        wait_for("the task's end", lambda: succeeds("ctr", "tasks", "rm", name))
    command("ctr", "containers", "rm", name)


def uninstall():
    if not os.path.ismount(STATE):
        return
    removed = subprocess.run(["podman", "rm", "--all", "--force", "--time", "0"], check=False)
    if not running():
        start()
    for sandbox in output("ctr", "--namespace", "k8s.io", "containers", "list", "--quiet").split():
        remove_pod(sandbox)
    for name in output("ctr", "containers", "list", "--quiet").split():
        remove_container(name)
    stop()
    for path in ("/sys/fs/cgroup", "/usr", *OWN, STATE):
        command("umount", "--lazy", path)
    for path in (*OWN, STATE):
        # What the machine has there of its own stays.
        with contextlib.suppress(OSError):
            os.rmdir(path)
    if removed.returncode != 0:
        # Their interfaces would fail tests that have nothing to do with them.
        sys.exit("podman has not removed its containers")


# --- containerd


def running():
    """Return the number of the containerd that start() has started, None if it has ended."""
    try:
        with open(PID) as stream:
            pid = int(stream.read())
        with open(f"/proc/{pid}/stat") as stream:
            state = stream.read().rpartition(")")[2].split()[0]
    except OSError:
        return None
    return None if state == "Z" else pid


def answers():
    if running() is None:
        with open(LOG) as stream:
            sys.exit("containerd has ended:\n" + stream.read()[-4000:])
    done = subprocess.run(["ctr", "--connect-timeout", "1s", "version"], capture_output=True, check=False)
    return done.returncode == 0


def start():
    if running() is not None:
        sys.exit("containerd runs already")
    with open(LOG, "ab") as log, open(os.devnull, "rb") as nothing:
        process = subprocess.Popen(["containerd"], stdin=nothing, stdout=log, stderr=log, start_new_session=True)
    with open(PID, "w") as stream:
        stream.write(str(process.pid))
    wait_for("containerd", answers)
    for namespace in ("k8s.io", "default"):
        command("ctr", "--namespace", namespace, "images", "import", ARCHIVE)


def stop(number=signal.SIGTERM):
    pid = running()
    if pid is not None:
        os.kill(pid, number)
        wait_for("the end of containerd", lambda: running() is None)


def pod(name):
    print(Cri(SOCKET).run_pod(name, STATE + "/logs"))


def remove_pod(sandbox):
    cri = Cri(SOCKET)
    cri.stop_pod(sandbox)
    cri.remove_pod(sandbox)


def main(name, *words):
    if name == "stop":
        stop(*(signal.Signals[word] for word in words))
    else:
        {
            "install": install,
            "start": start,
            "pod": pod,
            "remove-pod": remove_pod,
            "container": container,
            "remove-container": remove_container,
            "uninstall": uninstall,
        }[name](*words)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except CriError as error:
        sys.exit(str(error))
