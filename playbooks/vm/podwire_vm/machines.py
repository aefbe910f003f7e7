# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Machines: clones of a saved state; how they are created, found again and destroyed."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import images, states
from .common import Deadline, VmError, lock_shared, locked, need_memory, need_space, remove_tree, say
from .qemu import Hardware, Monitor, end_processes, processes_in, start
from .ssh import run_as_root

CLONE_SECONDS = 60
CLONE_MEMORY = 1500  # MiB that a clone grows to: its own memory, and with TCG the translated code
HOST_NAME = re.compile("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True)
class Wish:
    """A machine as the user describes it."""

    name: str
    image: object
    restrict: bool
    ports: dict[int, int]

    @classmethod
    def parse(cls, machine: object) -> Wish:
        """Check the description of a machine; VmError says what is wrong with it."""
        if not isinstance(machine, Mapping):
            raise VmError(f"machine {machine!r}: not a mapping with a name")
        name = machine.get("name")
        if not isinstance(name, str) or not HOST_NAME.fullmatch(name):
            raise VmError(
                f"machine {name!r}: its name is not a host name (lower-case letters, digits, hyphens; at most 63)"
            )
        restrict = machine.get("restrict", True)
        if not isinstance(restrict, bool):
            raise VmError(f"machine {name}: restrict is {restrict!r}, not true or false")
        ports = machine.get("forward", {})
        if not isinstance(ports, Mapping):
            raise VmError(f"machine {name}: forward is not a mapping of the machine's ports to ports of 127.0.0.1")
        wanted = {22: 0}
        for inside, outside in ports.items():
            wanted[_port(name, inside, 1)] = _port(name, outside, 0)
        # molecule allows only text for "image".
        return cls(name, machine.get("vm_image", machine.get("image", name)), restrict, wanted)


def _port(name: str, value: object, lowest: int) -> int:
    if isinstance(value, bool) or not re.fullmatch("[0-9]{1,5}", str(value)) or not lowest <= int(str(value)) <= 65535:
        raise VmError(f"machine {name}: {value!r} is not a TCP port ({lowest} to 65535)")
    return int(str(value))


def create(parent: Path, wish: Wish, accelerator: str) -> dict[str, Any]:
    """Create the machine in its own directory below ``parent``, unless it is already running there as described.

    Returns how Ansible reaches it. The image and its state are created if they are missing.
    """
    directory = parent / wish.name
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(parent / f".{wish.name}.lock", f"works on the machine {wish.name}"):
        image = images.find(wish.image)
        images.build(image)
        # QEMU holds it as well, so that no process removes the files that it reads.
        with lock_shared(image.lock) as lock:
            state, chosen, _dummy = states.save(image, accelerator)
            wanted = {
                "image": str(image.directory),
                "state": state.name,
                "restrict": wish.restrict,
                "ports": wish.ports,
            }
            running = _running(directory)
            if running and running["wish"] == json.loads(json.dumps(wanted)):
                return {"changed": False, "cold": running["cold"], "variables": running["variables"]}
            _destroy(directory)
            need_space(parent, 500)
            need_memory(CLONE_MEMORY)
            cold, ports = _start(directory, wish, image, state, chosen, lock)
            variables = _variables(image, ports)
            record = {"wish": wanted, "cold": cold, "variables": variables}
            (directory / "machine.json").write_text(json.dumps(record), encoding="utf-8")
            return {"changed": True, "cold": cold, "variables": variables}


def _running(directory: Path) -> dict[str, Any] | None:
    try:
        record: dict[str, Any] = json.loads((directory / "machine.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if any(True for dummy in processes_in(directory)) else None


def _start(
    directory: Path, wish: Wish, image: images.Image, state: Path, accelerator: str, lock: int
) -> tuple[str, dict[int, int]]:
    """Clone the machine or, where that fails, boot it; return why it was booted ("" for a clone) and its ports."""
    try:
        return "", _clone(directory, wish, image, state, accelerator, lock)
    except VmError as error:
        if any(wish.ports.values()) and "in use" in str(error):
            _destroy(directory)
            raise
        cold = str(error)
    say(f"{wish.name}: the clone does not work: {cold}; booting the machine instead")
    try:
        return cold, _boot(directory, wish, image, accelerator, lock)
    except VmError as error:
        raise VmError(
            f"{wish.name}: neither a clone nor a boot gave a working machine. Clone: {cold}. Boot: {error}"
        ) from error


def _clone(
    directory: Path, wish: Wish, image: images.Image, state: Path, accelerator: str, lock: int
) -> dict[int, int]:
    directory.mkdir(mode=0o700)
    states.overlay(state / "disk.qcow2", "qcow2", directory / "disk.qcow2")
    hardware = Hardware(
        accelerator,
        disk=directory / "disk.qcow2",
        memory=state / "memory",
        boot=image.boot_options(),
        wait_for_state=True,
        restrict=wish.restrict,
        forward=wish.ports,
    )
    start(directory, hardware, keep=[lock])
    with Monitor(directory) as monitor:
        monitor.restore(state / "state")
        ports = monitor.forwards()
    _introduce(directory, wish, image, ports, CLONE_SECONDS)
    return ports


def _boot(directory: Path, wish: Wish, image: images.Image, accelerator: str, lock: int) -> dict[int, int]:
    _destroy(directory)
    directory.mkdir(mode=0o700)
    name, form = image.backing
    states.overlay(image.directory / name, form, directory / "disk.qcow2")
    hardware = Hardware(
        accelerator,
        disk=directory / "disk.qcow2",
        memory=directory / "memory",
        boot=image.boot_options(),
        restrict=wish.restrict,
        forward=wish.ports,
    )
    start(directory, hardware, keep=[lock])
    with Monitor(directory) as monitor:
        ports = monitor.forwards()
    _introduce(directory, wish, image, ports, states.BOOT_SECONDS)
    return ports


def _introduce(directory: Path, wish: Wish, image: images.Image, ports: Mapping[int, int], seconds: float) -> None:
    """Set the time and the name of the machine."""
    script = (
        "echo ready; read now; date -s @$now >/dev/null; "
        f'hostname {wish.name}; echo {wish.name} >/etc/hostname; sed -i "s/ podwire-vm$/ {wish.name}/" /etc/hosts'
    )
    run_as_root(image.login, ports[22], script, Deadline(seconds), lambda: states.check_alive(directory))


def _variables(image: images.Image, ports: Mapping[int, int]) -> dict[str, Any]:
    variables = {
        "ansible_connection": "ssh",
        "ansible_host": "127.0.0.1",
        "ansible_port": ports[22],
        "ansible_user": image.login.user,
        "ansible_ssh_private_key_file": str(image.login.key),
        "ansible_ssh_common_args": " ".join([*image.login.options(), "-o IdentitiesOnly=yes"]),
        # Without Ansible's -C: compression costs an emulated processor more than it saves.
        "ansible_ssh_args": "-o ControlMaster=auto -o ControlPersist=300s",
        "ansible_ssh_pipelining": True,
        # An emulated machine beside others is slow; Ansible gives up after 12 s without an answer of sudo.
        "ansible_ssh_timeout": 120,
        "vm_ports": {str(inside): outside for inside, outside in ports.items() if inside != 22},
    }
    if not image.cloud_image:
        variables["ansible_python_interpreter"] = "/usr/bin/python3"
    return variables


def destroy_all(parent: Path) -> list[str]:
    """Destroy every machine in ``parent``, and processes of machines below it; return what was destroyed."""
    destroyed = []
    if parent.is_dir():
        for directory in sorted(_machine_directories(parent)):
            with locked(parent / f".{directory.name}.lock", f"works on the machine {directory.name}"):
                _destroy(directory)
            (parent / f".{directory.name}.lock").unlink(missing_ok=True)
            destroyed.append(directory.name)
    destroyed += [f"process {pid}" for pid in end_processes(parent)]
    states.sweep()
    with contextlib.suppress(OSError):
        parent.rmdir()
    return destroyed


def _machine_directories(parent: Path) -> Iterator[Path]:
    for lock in parent.glob(".*.lock"):
        yield parent / lock.name[1 : -len(".lock")]


def _destroy(directory: Path) -> None:
    end_processes(directory)
    remove_tree(directory)
