# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Cloud images: ready-made disks, on which cloud-init sets up the SSH access."""

from __future__ import annotations

import hashlib
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .common import VmError, need_program, run, say

KEYS = {"url", "checksum", "user"}


@dataclass(frozen=True)
class CloudImage:
    """Where the image comes from, its digest, and the user that cloud-init creates."""

    url: str
    algorithm: str
    digest: str
    user: str


def parse(wanted: Mapping[str, object]) -> CloudImage:
    """Check the description of a cloud image; VmError says what is wrong with it."""
    unknown = set(wanted) - KEYS
    if unknown:
        raise VmError(
            f"cloud image: unknown key {', '.join(sorted(map(str, unknown)))}; known are {', '.join(sorted(KEYS))}"
        )
    url, checksum, user = (
        wanted.get(key, default) for key, default in (("url", ""), ("checksum", ""), ("user", "tester"))
    )
    if not isinstance(url, str) or not re.match("(https|file)://", url):
        raise VmError(f"cloud image: url is {url!r}, not an https:// or file:// URL")
    match = (
        re.fullmatch("(sha256):([0-9a-f]{64})|(sha512):([0-9a-f]{128})", checksum)
        if isinstance(checksum, str)
        else None
    )
    if not match:
        raise VmError(f"cloud image {url}: checksum is {checksum!r}, not sha256:... or sha512:... in hexadecimal")
    if not isinstance(user, str) or not re.fullmatch("[a-z][a-z0-9_-]{0,31}", user):
        raise VmError(f"cloud image {url}: user is {user!r}, not a user name")
    return CloudImage(url, match[1] or match[3], match[2] or match[4], user)


def fetch(image: CloudImage, directory: Path) -> None:
    """Download and verify the image, and write the seed that cloud-init reads."""
    say(f"fetching {image.url}")
    download = directory / "download"
    digest = hashlib.new(image.algorithm)
    try:
        with urllib.request.urlopen(image.url, timeout=60) as source, open(download, "wb") as target:
            told = time.monotonic()
            while block := source.read(1 << 20):
                digest.update(block)
                target.write(block)
                if time.monotonic() - told > 10:
                    told = time.monotonic()
                    say(f"{image.url}: received {target.tell() / 1e6:.0f} MB")
    except (urllib.error.URLError, OSError) as error:
        raise VmError(f"cloud image {image.url}: {error}") from error
    if digest.hexdigest() != image.digest:
        raise VmError(f"cloud image {image.url}: its {image.algorithm} is {digest.hexdigest()}, not {image.digest}")
    need_program("qemu-img", "ssh-keygen")
    # A copy has the format of the cache, whether the image is raw or qcow2. An image with a backing file is refused,
    # because it could read any file of this machine.
    about = json.loads(run(["qemu-img", "info", "--output=json", download], what=f"reading {image.url}"))
    if "backing-filename" in about or about["format"] not in ("raw", "qcow2"):
        raise VmError(f"cloud image {image.url}: not a raw or qcow2 disk of its own")
    run(
        ["qemu-img", "convert", "-f", about["format"], "-O", "qcow2", download, directory / "disk.qcow2"],
        what=f"converting {image.url}",
        timeout=1800,
    )
    download.unlink()
    run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "podwire-vm", "-f", directory / "ssh_key"],
        what="creating a key",
    )
    _write_seed(image, directory)


def _write_seed(image: CloudImage, directory: Path) -> None:
    seed = directory / "seed"
    seed.mkdir()
    key = (directory / "ssh_key.pub").read_text(encoding="ascii").strip()
    user = {
        "name": image.user,
        "shell": "/bin/sh",
        "sudo": "ALL=(ALL) NOPASSWD:ALL",
        "ssh_authorized_keys": [key],
    }
    # JSON is YAML.
    (seed / "user-data").write_text("#cloud-config\n" + json.dumps({"users": [user]}) + "\n", encoding="utf-8")
    (seed / "meta-data").write_text(
        json.dumps({"instance-id": "podwire-vm", "local-hostname": "podwire-vm"}), encoding="utf-8"
    )


def boot_options(directory: Path) -> list[str]:
    """Return QEMU's options for a bootable disk and the seed."""
    seed = str(directory / "seed").replace(",", ",,")
    return [
        *("-drive", f"if=none,id=seed,format=raw,read-only=on,file.driver=vvfat,file.dir={seed},file.label=cidata"),
        *("-device", "virtio-blk-pci,drive=seed,addr=0x10"),
    ]
