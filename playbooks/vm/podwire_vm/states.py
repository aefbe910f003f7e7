# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Saved states: a machine of an image, booted once and stopped; clones of it resume in seconds.

Also decides between KVM and TCG: /dev/kvm may exist but fail to run the kernel of a distribution.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from . import images
from .common import (
    Deadline,
    VmError,
    cache_directory,
    locked,
    need_memory,
    need_program,
    need_space,
    remove_tree,
    run,
    say,
)
from .qemu import ACCELERATORS, MEMORY, QEMU, Hardware, Monitor, end_processes, last_words, processes_in, start
from .ssh import run_as_root

BOOT_SECONDS = 600
PROBE_SECONDS = 20
# Run before the state is saved: the machine has finished booting, and what every Ansible task reads is in its memory.
SETTLE = (
    "echo ready; read now; date -s @$now >/dev/null; cloud-init status --wait >/dev/null 2>&1; "
    "timeout 120 systemctl is-system-running --wait >/dev/null; "
    'python3 -c "import json, tempfile, zipfile, subprocess, platform, shlex, ast, importlib.util; '
    'import pyroute2" 2>/dev/null; sync'
)


def qemu_version() -> str:
    """Return QEMU's version; another version may not resume a state of this one."""
    need_program(QEMU)
    return run([QEMU, "--version"], what="asking QEMU for its version").splitlines()[0]


def directory_of(image: images.Image, accelerator: str) -> Path:
    """Return where the state of an image is kept."""
    settings = json.dumps(
        [qemu_version(), Hardware(accelerator, Path(), Path(), image.boot_options()).options(), SETTLE]
    )
    return image.directory / f"state-{accelerator}-{hashlib.sha256(settings.encode()).hexdigest()[:8]}"


def is_saved(image: images.Image, wish: str) -> bool:
    """Return whether the image and a state of it are in the cache."""
    accelerator = _known() if wish == "auto" else wish
    return image.ready and accelerator in ACCELERATORS and images.complete(directory_of(image, accelerator))


def save(image: images.Image, wish: str) -> tuple[Path, str, bool]:
    """Boot the image and save its state, unless that is in the cache. The image is ready.

    Returns the directory, the accelerator, and whether it was saved now.
    """
    accelerator = choose_accelerator(image, wish)
    try:
        return (*_save(image, accelerator),)
    except VmError as error:
        if wish != "auto" or accelerator != "kvm":
            raise
        say(f"{image.name}: with KVM: {error}. Going on with TCG")
        _remember("tcg", "a machine did not boot with KVM")
        return (*_save(image, "tcg"),)


def _save(image: images.Image, accelerator: str) -> tuple[Path, str, bool]:
    directory = directory_of(image, accelerator)
    with locked(image.save_lock, f"boots {image.name}"):
        if images.complete(directory):
            return directory, accelerator, False
        remove_tree(directory)
        need_space(image.directory, MEMORY + 500)
        need_memory(MEMORY)
        with booted(image, accelerator) as partial:
            begun = time.monotonic()
            say(f"{image.name}: booting it once with {accelerator.upper()} (10 to 60 s)")
            with Monitor(partial) as monitor:
                port = monitor.forwards()[22]
            run_as_root(image.login, port, SETTLE, Deadline(BOOT_SECONDS), lambda: check_alive(partial))
            with Monitor(partial) as monitor:
                monitor.save(partial / "state")
                monitor.command("quit")
            end_processes(partial)
            for name in ("qmp", "pid", "qemu.log"):
                (partial / name).unlink(missing_ok=True)
            images.finish(partial)
            partial.rename(directory)
            say(f"{image.name}: booted and saved in {time.monotonic() - begun:.0f} s")
    return directory, accelerator, True


@contextlib.contextmanager
def booted(image: images.Image, accelerator: str) -> Iterator[Path]:
    """Start a machine of the image in a temporary directory beside its files; yield that directory and clean up.

    The caller holds the image's save lock.
    """
    remove_partial(image.directory)
    partial = Path(tempfile.mkdtemp(prefix="tmp-", dir=image.directory))
    try:
        name, form = image.backing
        overlay(Path("..") / name, form, partial / "disk.qcow2")
        hardware = Hardware(
            accelerator,
            disk=partial / "disk.qcow2",
            memory=partial / "memory",
            boot=image.boot_options(),
            share_memory=True,
            forward={22: 0},
        )
        start(partial, hardware)
        yield partial
    finally:
        end_processes(partial)
        remove_tree(partial)


def remove_partial(directory: Path) -> None:
    """Remove what interrupted boots of an image have left; the caller holds its save lock."""
    for leftover in directory.glob("tmp-*"):
        end_processes(leftover)
        remove_tree(leftover)


def sweep() -> None:
    """Remove what interrupted builds of all images have left, unless a build is running."""
    parent = images.image_directory()
    for suffix, remove in ((".build", images.remove_partial), (".save", remove_partial)):
        for path in parent.glob(f".*{suffix}"):
            # In use, so it is not left over.
            with contextlib.suppress(VmError), locked(path, None):
                remove(parent / path.name[1 : -len(suffix)])


def overlay(backing: Path, form: str, path: Path) -> None:
    """Make a disk that holds only what differs from ``backing``."""
    need_program("qemu-img")
    run(
        ["qemu-img", "create", "-q", "-f", "qcow2", "-F", form, "-b", backing, path],
        what=f"making a disk on {backing}",
    )


def check_alive(directory: Path) -> None:
    """Raise VmError when the machine's QEMU has ended."""
    if not any(True for dummy in processes_in(directory)):
        raise VmError(f"the machine's QEMU ended by itself; {last_words(directory)}")


def choose_accelerator(image: images.Image, wish: str) -> str:
    """Return "kvm" or "tcg": as requested, or for "auto" KVM if it runs the image's kernel; remembered."""
    if wish in ACCELERATORS:
        return wish
    if wish != "auto":
        raise VmError(f"accelerator {wish!r}: not one of auto, {', '.join(ACCELERATORS)}")
    known = _known()
    if known is not None:
        return known
    with locked(cache_directory() / ".accelerator.lock", "finds out whether KVM works"):
        known = _known()
        if known is None:
            known, reason = _probe(image)
            _remember(known, reason)
            say(f"virtual machines run with {known.upper()}: {reason}")
        return known


def _probe(image: images.Image) -> tuple[str, str]:
    try:
        with open("/dev/kvm", "r+b", buffering=0):
            pass
    except OSError as error:
        return "tcg", f"/dev/kvm: {error.strerror}"
    if image.cloud_image:
        return "kvm", "/dev/kvm is there"
    try:
        with locked(image.save_lock, f"boots {image.name}"), booted(image, "kvm") as directory:
            deadline = Deadline(PROBE_SECONDS)
            while not deadline.over:
                check_alive(directory)
                if (directory / "console.log").stat().st_size > 0:
                    return "kvm", "it runs the kernel of a distribution"
                time.sleep(0.1)
    except VmError as error:
        return "tcg", f"with KVM: {error}"
    return "tcg", f"with KVM the kernel of a distribution printed nothing within {PROBE_SECONDS} s"


def _machine() -> str:
    """Return what the answer depends on."""
    words = [Path("/proc/version").read_text(encoding="utf-8"), qemu_version(), str(Path("/dev/kvm").exists())]
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        words += [line for line in lines if line.startswith(("model name", "flags"))][:2]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def _known() -> str | None:
    try:
        known = json.loads((cache_directory() / "accelerator.json").read_text(encoding="utf-8"))
        return str(known["accelerator"]) if known["machine"] == _machine() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(accelerator: str, reason: str) -> None:
    path = cache_directory() / "accelerator.json"
    partial = path.with_suffix(".tmp")
    partial.write_text(
        json.dumps({"machine": _machine(), "accelerator": accelerator, "reason": reason}), encoding="utf-8"
    )
    partial.rename(path)
