# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Takes a picture of a terminal: bootstrap, and drift after some breaks, of hosts of the playground.

terminal.py HOSTS SVG
"""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

PLAYGROUND = Path(__file__).resolve().parents[3] / "demo" / "playground.sh"
COLUMNS = 120
VARIABLES = """\
---
cni_plugins_src: /usr/lib/cni
cni_plugins_remote_src: true
cni_plugins_names: [bridge, firewall, host-local, loopback, portmap]
cni_networks:
  - name: apps
    conflist:
      cniVersion: "1.0.0"
      plugins:
        - {type: bridge, bridge: apps0, isGateway: true, ipMasq: true,
           ipam: {type: host-local, ranges: [[{subnet: 10.88.0.0/24}]], routes: [{dst: 0.0.0.0/0}]}}
        - {type: firewall}
cni_netns: [app]
cni_attachments:
  - {network: apps, container_id: app, netns: app}
"""
COMMANDS = (
    "ansible-playbook -i inventory.yml podwire.cni.bootstrap -e cni_hosts=all",
    "ansible-playbook -i inventory.yml podwire.cni.drift",
)
# On the last hosts, one each.
BREAKS = (
    "ip -n app address delete 10.88.0.2/24 dev eth0",
    "sed -i s/10.88.0.0/10.99.0.0/ /etc/cni/net.d/10-apps.conflist",
    "rm /opt/cni/bin/bridge",
)


def record(folder: Path, names: list[str]) -> list[str]:
    """Return what the commands print to a terminal, on new hosts of these names."""
    fleet = folder / "fleet" / "group_vars"
    fleet.mkdir(parents=True)
    (fleet / "all.yml").write_text(VARIABLES)
    lines = [f"export ANSIBLE_LOCALHOST_WARNING=false COLUMNS={COLUMNS}"]
    for number, command in enumerate(COMMANDS):
        in_terminal = f"stty cols {COLUMNS}; {command}"
        lines.append(f"script --quiet --command {shlex.quote(in_terminal)} {folder}/{number} >{folder}/log </dev/null")
        if not number:
            broken = list(zip(reversed(names), BREAKS))
            lines += [f"ansible -i inventory.yml {name} -a {shlex.quote(line)} >{folder}/log" for name, line in broken]
    subprocess.run([PLAYGROUND, folder, *names], input="\n".join(lines), text=True, check=True)
    printed = [(folder / str(number)).read_text() for number in range(len(COMMANDS))]
    # Without the lines that script adds.
    return [re.sub(r"\AScript started.*\n|\n?Script done.*\n?\Z", "", text).strip() for text in printed]


def main(count: int, target: str) -> None:
    names = ["node1"] if count == 1 else [f"node{number:02}" for number in range(1, count + 1)]
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    with tempfile.TemporaryDirectory(prefix="podwire-") as folder:
        for command, printed in zip(COMMANDS, record(Path(folder), names)):
            console.print(Text(f"$ {command}", style="bold"))
            console.print(Text.from_ansi(printed.replace(folder, "/home/ops")), end="\n\n")
    console.save_svg(target, title=f"{count} host{'s' if count > 1 else ''}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
