# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Images: what a machine boots from, kept in the cache by the digest of the recipe."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import cloud
from .common import VmError, cache_directory, locked, need_program, need_space, remove_tree, say
from .ssh import Login

RECIPE = Path(__file__).resolve().parent.parent / "build_image"
SUITES = {"debian-12": "bookworm", "debian-13": "trixie", "debian-forky": "forky"}
PACKAGE = re.compile("[a-z0-9][a-z0-9+.-]+")
UNUSED_DAYS = 30
# norandmaps: QEMU translates a program's code again for each address that it is loaded to. Not audit=0: without its
# audit system the kernel starts modprobe whenever PAM asks for it, several times for each sudo.
KERNEL_ARGUMENTS = "root=/dev/vda rw console=ttyS0 quiet mitigations=off norandmaps systemd.show_status=0"


@dataclass(frozen=True)
class Image:
    """An image and where it is, or will be, in the cache."""

    name: str
    directory: Path
    cloud_image: cloud.CloudImage | None = None
    packages: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether all files exist with their original lengths."""
        return complete(self.directory)

    @property
    def lock(self) -> Path:
        """The lock for removing the image; its machines share it."""
        return self.directory.with_name(f".{self.directory.name}.lock")

    @property
    def build_lock(self) -> Path:
        """The lock for building the image."""
        return self.lock.with_suffix(".build")

    @property
    def save_lock(self) -> Path:
        """The lock for booting the image to save its state."""
        return self.lock.with_suffix(".save")

    @property
    def backing(self) -> tuple[str, str]:
        """The disk's file name in the directory, and its format."""
        return ("disk.qcow2", "qcow2") if self.cloud_image else ("disk.raw", "raw")

    @property
    def login(self) -> Login:
        """How machines of this image are reached."""
        known_hosts = None if self.cloud_image else self.directory / "known_hosts"
        user = self.cloud_image.user if self.cloud_image else "tester"
        return Login(user=user, key=self.directory / "ssh_key", known_hosts=known_hosts)

    def boot_options(self) -> list[str]:
        """Return QEMU's options for booting it."""
        if self.cloud_image:
            return cloud.boot_options(self.directory)
        return [
            *("-kernel", str(self.directory / "vmlinuz"), "-initrd", str(self.directory / "initrd.img")),
            *("-append", KERNEL_ARGUMENTS),
        ]


def find(wanted: object) -> Image:
    """Return the image for the user's description.

    That is a name from SUITES, such a name with additional packages, or the description of a cloud image.
    """
    if isinstance(wanted, Mapping) and "name" not in wanted:
        cloud_image = cloud.parse(wanted)
        return Image("cloud", _directory("cloud", json.dumps(wanted, sort_keys=True).encode()), cloud_image)
    name, packages = (wanted.get("name"), _packages(wanted)) if isinstance(wanted, Mapping) else (wanted, ())
    if not isinstance(name, str) or name not in SUITES:
        raise VmError(
            f"image {name!r}: unknown. Known are {', '.join(SUITES)}; a cloud image is described by a mapping with "
            "url and checksum"
        )
    recipe = RECIPE.read_bytes() + " ".join((SUITES[name], *packages)).encode()
    return Image(name, _directory(name, recipe), packages=packages)


def _packages(wanted: Mapping[str, object]) -> tuple[str, ...]:
    """Return the packages of ``{name: ..., packages: [...]}``, sorted, because their order makes no difference."""
    unknown = ", ".join(sorted(map(str, wanted.keys() - {"name", "packages"})))
    if unknown:
        raise VmError(
            f"image {wanted['name']!r}: unknown key {unknown}; the keys of a Debian image are name and packages"
        )
    packages = wanted.get("packages", [])
    if not isinstance(packages, list):
        raise VmError(f"image {wanted['name']!r}: packages is not a list of Debian packages")
    for package in packages:
        if not isinstance(package, str) or not PACKAGE.fullmatch(package):
            raise VmError(f"image {wanted['name']!r}: {package!r} is not the name of a Debian package")
    return tuple(sorted(set(packages)))


def _directory(name: str, recipe: bytes) -> Path:
    return image_directory() / f"{name}-{hashlib.sha256(recipe).hexdigest()[:16]}"


def image_directory() -> Path:
    """Return the directory of all images; it exists."""
    directory = cache_directory() / "images"
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def build(image: Image) -> bool:
    """Build the image unless it is in the cache; return whether it was built. Other processes that need it wait."""
    with locked(image.build_lock, f"builds the image {image.name}") as lock:
        if image.ready:
            return False
        parent = image.directory.parent
        prune(parent, image)
        if image.directory.exists():
            say(f"{image.name}: the image in the cache is damaged; building it again")
            remove_unused(image)
        remove_partial(image.directory)
        need_space(parent, 3000)
        partial = Path(tempfile.mkdtemp(prefix=f".{image.directory.name}.tmp-", dir=parent))
        try:
            begun = time.monotonic()
            if image.cloud_image:
                cloud.fetch(image.cloud_image, partial)
            else:
                _bootstrap(image, partial, lock)
            finish(partial)
            partial.rename(image.directory)
        except BaseException:
            remove_tree(partial)
            raise
        say(f"{image.name}: image built in {time.monotonic() - begun:.0f} s")
        return True


def remove_partial(directory: Path) -> None:
    """Remove what interrupted builds of an image have left; the caller holds its build lock."""
    for leftover in directory.parent.glob(f".{directory.name}.tmp-*"):
        remove_tree(leftover)


def _bootstrap(image: Image, directory: Path, lock: int) -> None:
    name = image.name
    need_program("mmdebstrap", "mke2fs", "ssh-keygen", "unshare", "setpriv")
    if os.uname().machine != "x86_64":
        raise VmError(f"images are built on x86-64 only, this machine is {os.uname().machine}")
    say(f"{name}: installing the packages of Debian {SUITES[name]} (about a minute)")
    # If this process is killed, the build ends with it; until then it holds the lock, too, by inheriting it.
    command = ["setpriv", "--pdeathsig", "KILL", "--", "bash", str(RECIPE), SUITES[name], str(directory)]
    command += image.packages
    if os.geteuid() == 0:
        # So do all its processes and mounts.
        command[4:4] = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--"]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=[lock],
        text=True,
        errors="replace",
    ) as process:
        stop = threading.Event()
        threading.Thread(target=_tick, args=(name, directory, stop), daemon=True).start()
        said = process.communicate()[0]
        stop.set()
    if process.returncode != 0:
        raise VmError(
            f"the image {name} could not be built (status {process.returncode}). The last lines of the build: "
            + " | ".join(line.strip() for line in said.strip().splitlines()[-15:])
        )


def _tick(name: str, directory: Path, stop: threading.Event) -> None:
    """Report the progress of the build from time to time."""
    begun = time.monotonic()
    while not stop.wait(15):
        step = "writing the disk" if (directory / "disk.raw").exists() else "installing packages"
        say(f"{name}: {step}, {time.monotonic() - begun:.0f} s so far")


def finish(directory: Path) -> None:
    """Record the files in ``directory``, which `complete` checks."""
    sizes = {path.name: path.stat().st_size for path in directory.iterdir() if path.is_file()}
    (directory / "complete.json").write_text(json.dumps(sizes), encoding="utf-8")


def complete(directory: Path) -> bool:
    """Return whether every file that `finish` recorded exists with its original length."""
    try:
        sizes: dict[str, Any] = json.loads((directory / "complete.json").read_text(encoding="utf-8"))
        return all((directory / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def remove_unused(image: Image) -> None:
    """Remove an image from the cache; VmError when machines are running on it."""
    with locked(image.lock, None):
        shutil.rmtree(image.directory)


def prune(parent: Path, keep: Image) -> None:
    """Remove images from which no machine was created for UNUSED_DAYS."""
    for directory in parent.iterdir():
        if directory.name.startswith(".") or directory == keep.directory:
            continue
        old = Image(re.sub("-[0-9a-f]{16}$", "", directory.name), directory)
        used = old.lock if old.lock.exists() else directory
        if time.time() - used.stat().st_mtime > UNUSED_DAYS * 86400:
            say(f"{old.name}: removing an image that was not used for {UNUSED_DAYS} days")
            try:
                remove_unused(old)
            except VmError:
                continue
