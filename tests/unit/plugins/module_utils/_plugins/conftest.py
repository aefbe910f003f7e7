# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""podwire-multinet as its executable, with recorders as the plugins that it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils import libcni
from ansible_collections.podwire.cni.plugins.module_utils.libcni import bundle

SOURCE = Path(libcni.__file__).parents[1] / "_plugins" / "multinet.py"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
POD_ANNOTATIONS = "io.kubernetes.cri.pod-annotations"
CONTAINERD = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=c1;K8S_POD_UID=u1"
CAPABILITIES = ("portMappings", "bandwidth", "dns", "cgroupPath", "mac", "ips", "aliases", POD_ANNOTATIONS)

# Writes down each call, and fails or takes its time where a file says so.
RECORDER = """#!{python} -IS
import json, os, sys, time
here = {here!r}
stdin = json.load(sys.stdin)
command, name = os.environ["CNI_COMMAND"], stdin["name"]
records = os.listdir(here + "/cni/pods") if os.path.isdir(here + "/cni/pods") else []
env = {{key: value for key, value in os.environ.items() if key.startswith("CNI_")}}
def note(what):
    with open(here + "/log", "a") as log:
        log.write(json.dumps({{"what": what, "name": name, "env": env, "stdin": stdin, "records": records}}) + "\\n")
note(command)
if os.path.exists(f"{{here}}/slow-{{command}}-{{name}}"):
    time.sleep(1.5)
    note("end of " + command)
if os.path.exists(f"{{here}}/fail-{{command}}-{{name}}"):
    print(json.dumps({{"code": 50 if command == "STATUS" else 120, "msg": f"planned failure of {{command}}"}}))
    sys.exit(1)
if command == "ADD":
    result = stdin.get("result") or {{"interfaces": [{{"name": env["CNI_IFNAME"], "sandbox": env["CNI_NETNS"]}}]}}
    print(json.dumps({{"cniVersion": stdin["cniVersion"], **result}}))
elif command == "VERSION":
    print(json.dumps({{"cniVersion": "1.1.0", "supportedVersions": ["0.4.0", "1.0.0", "1.1.0"]}}))
"""


class World:
    """A host with podwire-multinet, whose directories are in *folder*, and a pod's namespace."""

    def __init__(self, folder, plugin):
        self.folder = folder
        self.plugin = plugin
        self.netns = str(folder / "netns")
        self.args = CONTAINERD
        self.conf = self.default_conf()
        for name in ("bin", "nads/default", "conf", "pods"):
            (folder / name).mkdir(parents=True)
        recorder = folder / "bin" / "rec"
        recorder.write_text(RECORDER.format(python=sys.executable, here=str(folder)))
        recorder.chmod(0o755)

    def default_conf(self):
        directories = {"cniDir": "cni", "nadDir": "nads", "confDir": "conf", "podDir": "pods", "binDir": "bin"}
        return {
            "cniVersion": "1.1.0",
            "name": "outer",
            "type": "podwire-multinet",
            "capabilities": dict.fromkeys(CAPABILITIES, True),
            "delegates": [self.network("cluster")],
            **{key: str(self.folder / name) for key, name in directories.items()},
        }

    @staticmethod
    def network(name, **more):
        return {
            "cniVersion": "1.1.0",
            "type": "rec",
            "capabilities": dict.fromkeys(CAPABILITIES, True),
            **({"name": name} if name else {}),
            **more,
        }

    def nad(self, name, namespace="default", **more):
        """Write a NetworkAttachmentDefinition."""
        path = self.folder / "nads" / namespace / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        spec = {"config": json.dumps(self.network("", **more))}
        metadata = {"name": name, "namespace": namespace}
        path.write_text(json.dumps({"kind": "NetworkAttachmentDefinition", "metadata": metadata, "spec": spec}))
        return path

    def mark(self, name, there=True):
        """Let a recorder fail (fail-COMMAND-NETWORK) or be slow (slow-COMMAND-NETWORK)."""
        path = self.folder / name
        path.touch() if there else path.unlink()

    def environment(self, command, **more):
        values = {"CONTAINERID": "c1", "NETNS": self.netns, "IFNAME": "eth0", "ARGS": self.args, "PATH": "/nowhere"}
        values.update(more)
        if command in ("GC", "STATUS"):
            values = {"PATH": "/nowhere", **more}
        return {"CNI_COMMAND": command, **{f"CNI_{key}": value for key, value in values.items()}}

    def stdin(self, annotation=None, runtime=None, **more):
        """Return the configuration as a runtime sends it; an annotation is what containerd sends."""
        given = dict(runtime or {})
        if annotation is not None:
            given[POD_ANNOTATIONS] = {NETWORKS: annotation}
        return json.dumps({**self.conf, **more, **({"runtimeConfig": given} if given else {})}).encode()

    def start(self, command, stdin, **more):
        env = {"PATH": os.environ["PATH"], **self.environment(command, **more)}
        process = subprocess.Popen(
            [self.plugin], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd="/"
        )
        process.stdin.write(stdin)
        process.stdin.close()
        process.stdin = None
        return process

    def call(self, command, annotation=None, runtime=None, env=None, raw=None, **more):
        """Return the exit status and what was printed, as JSON if it is."""
        stdin = self.stdin(annotation, runtime, **more) if raw is None else raw
        process = self.start(command, stdin, **(env or {}))
        stdout, stderr = process.communicate(timeout=120)
        assert b"Traceback" not in stderr, stderr.decode()
        return process.returncode, json.loads(stdout) if stdout else None

    def ok(self, command, *args, **more):
        status, printed = self.call(command, *args, **more)
        assert status == 0, printed
        return printed

    def error(self, command, *args, **more):
        status, printed = self.call(command, *args, **more)
        assert status == 1, printed
        return printed

    def calls(self, what=None):
        """Return what the recorders got since the last time; with *what* only NETWORK/INTERFACE of these commands."""
        log = self.folder / "log"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        log.unlink(missing_ok=True)
        if what is None:
            return lines
        return [f"{line['name']}/{line['env'].get('CNI_IFNAME', '')}" for line in lines if line["what"] == what]

    def wait_for(self, what):
        end = time.monotonic() + 60
        log = self.folder / "log"
        while not log.exists() or what not in log.read_text():
            assert time.monotonic() < end
            time.sleep(0.01)

    @property
    def record(self):
        return self.folder / "cni" / "pods" / "c1:eth0"

    def left(self):
        """Return the names of the records and of libcni's entries."""
        files = [path for path in (self.folder / "cni").rglob("*") if path.is_file()]
        return sorted(str(path.relative_to(self.folder / "cni")) for path in files)


@pytest.fixture(scope="session")
def multinet(tmp_path_factory):
    path = tmp_path_factory.mktemp("multinet") / "podwire-multinet"
    bundle.write(bundle.bundle(str(SOURCE), sys.executable), str(path))
    return path


@pytest.fixture
def world(tmp_path, multinet):
    made = World(tmp_path, multinet)
    Path(made.netns).touch()
    subprocess.run(["unshare", f"--net={made.netns}", "true"], check=True)
    for name in ("storage", "backup"):
        made.nad(name)
    yield made
    subprocess.run(["umount", made.netns], check=True)
