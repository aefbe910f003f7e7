# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a real containerd and makes a real podman usable, as root in a namespace of tests/private.sh.

    runtimes.py install PACKAGES    as if the packages unpacked in PACKAGES were installed; both read /etc/cni/net.d
    runtimes.py start               start containerd, wait until it answers
    runtimes.py stop [SIGKILL]      end it; its containers go on
    runtimes.py pod NAME            run a pod sandbox by CRI and print its id
    runtimes.py remove-pod ID
    runtimes.py container NAME      run a container by `ctr run --cni`
    runtimes.py remove-container NAME
    runtimes.py uninstall           end everything, and undo the installation

podman is called as `podman`, `ctr` as `ctr`, both with the image localhost/podwire:1, whose command sleeps.
Nothing touches control groups: the OCI runtime is crun, told to leave them alone.
"""

import hashlib
import io
import json
import os
import platform
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import time

STATE = "/run/podwire-runtimes"
PACKAGES = STATE + "/packages"
CRUN = STATE + "/crun"
ARCHIVE = STATE + "/image.tar"
PID = STATE + "/containerd.pid"
LOG = STATE + "/containerd.log"
SOCKET = "/run/containerd/containerd.sock"
IMAGE = "localhost/podwire:1"
WAIT = 60.0

CONTAINERD_CONFIG = f"""
version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{IMAGE}"
# What lacks CAP_SYS_RESOURCE cannot lower the score.
restrict_oom_score_adj = true
disable_cgroup = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "{CRUN}"
"""
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
FILES = {
    CRUN: f'#!/bin/sh\nexec {PACKAGES}/usr/bin/crun --cgroup-manager=disabled "$@"\n',
    "/etc/containerd/config.toml": CONTAINERD_CONFIG,
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


def install(packages):
    os.makedirs(STATE)
    # An overlay cannot lie on an overlay, as which /run and /var/lib are there; and root runs only what root owns.
    command("mount", "-t", "tmpfs", "-o", "mode=0755", "podwire-runtimes", STATE)
    for folder in ("bin", "lib"):
        # Packages of before the merge of / and /usr have a part there.
        for place in (folder, "usr/" + folder):
            source = os.path.join(packages, place)
            if os.path.isdir(source):
                shutil.copytree(source, f"{PACKAGES}/usr/{folder}", symlinks=True, dirs_exist_ok=True)
    command("mount", "-t", "overlay", "-o", f"lowerdir={PACKAGES}/usr:/usr", "podwire-runtimes", "/usr")
    os.makedirs("/var/lib/containerd", exist_ok=True)
    command("mount", "-t", "tmpfs", "-o", "mode=0711", "podwire-runtimes", "/var/lib/containerd")
    # crun wants to see some control groups there.
    command("mount", "-t", "cgroup2", "podwire-runtimes", "/sys/fs/cgroup")
    for path, text in FILES.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as stream:
            stream.write(text)
    os.chmod(CRUN, 0o755)
    write_image(PACKAGES + "/usr/bin/busybox")
    command("podman", "load", "--quiet", "--input", ARCHIVE)


def write_image(busybox):
    """Write the image as `docker save` would: one layer, with busybox in it."""
    with open(busybox, "rb") as stream:
        layer = archive({"busybox": stream.read()})
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    config = json.dumps(
        {
            "architecture": machine,
            "os": "linux",
            "config": {"Entrypoint": ["/busybox"], "Cmd": ["sleep", "100000"]},
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        }
    ).encode()
    name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": name, "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]).encode()
    with open(ARCHIVE, "wb") as stream:
        stream.write(archive({name: config, "layer.tar": layer, "manifest.json": manifest}))


def archive(files):
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
    return written.getvalue()


def container(name):
    command("ctr", "run", "--detach", "--cni", "--runc-binary", CRUN, IMAGE, name)


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
    subprocess.run(["podman", "rm", "--all", "--force", "--time", "0"], check=False)
    if not running():
        start()
    for sandbox in output("ctr", "--namespace", "k8s.io", "containers", "list", "--quiet").split():
        remove_pod(sandbox)
    for name in output("ctr", "containers", "list", "--quiet").split():
        remove_container(name)
    stop()
    for path in ("/sys/fs/cgroup", "/var/lib/containerd", "/usr", STATE):
        command("umount", "--lazy", path)


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


# --- CRI: gRPC, as much of it as calling a method with a short request needs


def varint(number):
    encoded = b""
    while number > 127:
        encoded += bytes([number & 127 | 128])
        number >>= 7
    return encoded + bytes([number])


def field(number, value):
    """Return a field of a protobuf message: a text or a message."""
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def header(name, value):
    return b"\0" + varint(len(name)) + name.encode() + varint(len(value)) + value.encode()


DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM = ACK = 1
END_HEADERS = 4


def call(method, request):
    """Call a method of CRI's RuntimeService; return the reply, or end this program if there is none."""
    path = "/runtime.v1.RuntimeService/" + method
    headers = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost"}
    headers.update({"content-type": "application/grpc", "te": "trailers"})
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(WAIT)
        connection.connect(SOCKET)
        connection.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            + frame(SETTINGS, 0, 0, b"")
            + frame(HEADERS, END_HEADERS, 1, b"".join(header(*pair) for pair in headers.items()))
            + frame(DATA, END_STREAM, 1, b"\0" + struct.pack(">I", len(request)) + request)
        )
        reply = receive(connection)
    # A method that fails sends no message. Why it failed is in the headers, compressed, and in the log.
    if len(reply) < 5:
        with open(LOG) as stream:
            sys.exit(f"{method} failed:\n{stream.read()[-4000:]}")
    return reply[5:]


def receive(connection):
    """Return what the other side sends until it ends the stream, and answer what it asks meanwhile."""
    reply = b""
    with connection.makefile("rb") as stream:
        while True:
            head = stream.read(9)
            if len(head) < 9:
                return reply
            kind, flags = head[3], head[4]
            payload = stream.read(int.from_bytes(head[:3], "big"))
            if kind == SETTINGS and not flags & ACK:
                connection.sendall(frame(SETTINGS, ACK, 0, b""))
            elif kind == PING and not flags & ACK:
                connection.sendall(frame(PING, ACK, 0, payload))
            elif kind == DATA:
                reply += payload
            if kind in (RESET, GOAWAY) or (kind in (DATA, HEADERS) and flags & END_STREAM):
                return reply


def pod(name):
    metadata = field(1, name) + field(2, name + "-uid") + field(3, "default")
    config = field(1, metadata) + field(2, name) + field(3, STATE + "/logs") + field(8, b"")
    reply = call("RunPodSandbox", field(1, config))
    # One field: the id, which is shorter than 128 bytes.
    print(reply[2:].decode())


def remove_pod(sandbox):
    call("StopPodSandbox", field(1, sandbox))
    call("RemovePodSandbox", field(1, sandbox))


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
    main(*sys.argv[1:])
