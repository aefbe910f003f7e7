# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The image that pods and containers of the tests run: busybox, which sleeps."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile

NAME = "localhost/podwire:1"


def write(path, busybox):
    """Write the image as `docker save` would: one layer, with the program *busybox* in it."""
    with open(busybox, "rb") as stream:
        layer = _archive({"busybox": stream.read()})
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
    manifest = json.dumps([{"Config": name, "RepoTags": [NAME], "Layers": ["layer.tar"]}]).encode()
    with open(path, "wb") as stream:
        stream.write(_archive({name: config, "layer.tar": layer, "manifest.json": manifest}))


def _archive(files):
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
    return written.getvalue()
