# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The command that vm_create, vm_destroy and ./run call; its output is JSON, its progress goes to standard error."""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from podwire_vm import images, machines, progress, states  # noqa: E402
from podwire_vm.common import FAILED, VmError  # noqa: E402

BUILDS_AT_ONCE = 2


def parse_arguments() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(prog="vm.py", description=__doc__)
    parser.add_argument("--accelerator", default="auto", help="auto (default), kvm or tcg")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("check", help="check the description of machines; report what must be built")
    command.add_argument("machines", type=json.loads, help="JSON list")
    command = commands.add_parser("build", help="build an image and save its state, unless they are in the cache")
    command.add_argument("image", nargs="+", help="a name, or JSON that describes a cloud image")
    command = commands.add_parser(
        "follow", help="the same for one image, in the background; wait for a line of progress"
    )
    command.add_argument("directory", type=Path, help="directory of the run's machines")
    command.add_argument("name", help="the name of the machine")
    command.add_argument("image", help="as for build")
    command.add_argument("number", type=int, help="number of the line; 1 starts the build")
    command = commands.add_parser("create", help="create a machine, unless it is running")
    command.add_argument("directory", type=Path, help="directory of the run's machines")
    command.add_argument("machine", type=json.loads, help="JSON mapping")
    command = commands.add_parser("destroy", help="destroy all machines in or below a directory")
    command.add_argument("directory", type=Path)
    return parser.parse_args()


def wanted_image(text: str) -> object:
    """Return the name or the description that ``text`` stands for."""
    return json.loads(text) if text.startswith("{") else text


def check(descriptions: object, accelerator: str) -> dict[str, Any]:
    """Return the names and images of the machines, and whether an image must be built for them."""
    if not isinstance(descriptions, list) or not descriptions:
        raise VmError("no machines: vm_machines (or platforms, in molecule.yml) must be a list of at least one mapping")
    wishes = [machines.Wish.parse(description) for description in descriptions]
    names = [wish.name for wish in wishes]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise VmError(f"machine {', '.join(twice)}: two machines have this name")
    return {
        "machines": [
            {"name": wish.name, "image": wish.image, "build": not states.is_saved(images.find(wish.image), accelerator)}
            for wish in wishes
        ]
    }


def build(wanted: object, accelerator: str) -> dict[str, Any]:
    """Build an image and save its state."""
    image = images.find(wanted)
    built = images.build(image)
    directory, _dummy, saved = states.save(image, accelerator)
    return {"changed": built or saved, "directory": str(directory)}


def follow(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return a line about the build of an image; start the build for the first."""
    command = [
        sys.executable,
        Path(__file__).resolve(),
        "--accelerator",
        arguments.accelerator,
        "build",
        arguments.image,
    ]
    directory = arguments.directory.absolute() / f".build-{arguments.name}"
    found = progress.follow(command, directory, arguments.number)
    changed = any(built["changed"] for built in found.pop("result", []))
    return {**found, "changed": changed}


def main() -> int:
    """Run a command; return the exit status."""
    arguments = parse_arguments()
    os.umask(0o077)
    try:
        if arguments.command == "check":
            result: Any = check(arguments.machines, arguments.accelerator)
        elif arguments.command == "build":
            with ThreadPoolExecutor(BUILDS_AT_ONCE) as pool:
                result = list(pool.map(lambda text: build(wanted_image(text), arguments.accelerator), arguments.image))
        elif arguments.command == "follow":
            result = follow(arguments)
        elif arguments.command == "create":
            result = machines.create(
                arguments.directory.absolute(), machines.Wish.parse(arguments.machine), arguments.accelerator
            )
        else:
            result = {"destroyed": machines.destroy_all(arguments.directory.absolute())}
    except (VmError, OSError) as error:
        print(f"{FAILED}{error}", file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
