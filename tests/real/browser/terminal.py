# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Takes a picture of a terminal: the commands of docs/getting-started.md on one host, or drift of several hosts.

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

from rich.console import CONSOLE_SVG_FORMAT, Console
from rich.text import Text

PLAYGROUND = Path(__file__).resolve().parents[3] / "demo" / "playground.sh"
COLUMNS = 120
# rich's format loads a font from elsewhere. Any monospaced one fits, because rich sets the length of each text.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace("Fira Code, ", "")
VARIABLES = """\
---
cni_plugins_src: /usr/lib/cni
cni_plugins_remote_src: true
cni_plugins_names: [bridge, firewall, host-local, loopback, portmap]
cni_networks:
  - name: podnet
    conflist:
      cniVersion: "1.0.0"
      plugins:
        - {type: bridge, bridge: cni0, isGateway: true, ipMasq: true,
           ipam: {type: host-local, ranges: [[{subnet: 10.22.0.0/16}]], routes: [{dst: 0.0.0.0/0}]}}
        - {type: portmap, capabilities: {portMappings: true}}
        - {type: firewall}
"""
ATTACHMENTS = """\
cni_netns: [app]
cni_attachments:
  - {network: podnet, container_id: app, netns: app}
"""
PLAY = "ansible-playbook -i inventory.yml podwire.cni."
BOOTSTRAP, SMOKE, DRIFT = f"{PLAY}bootstrap -e cni_hosts=nodes", f"{PLAY}smoke -e cni_hosts=nodes", f"{PLAY}drift"
# On the last hosts, one each.
BREAKS = (
    "ip -n app address delete 10.22.0.2/16 dev eth0",
    "sed -i s/10.22.0.0/10.23.0.0/ /etc/cni/net.d/10-podnet.conflist",
    "rm /opt/cni/bin/bridge",
)


def record(folder: Path, names: list[str], before: list[str], commands: list[str]) -> list[str]:
    """Return what *commands* print to a terminal, on new hosts of these names on which *before* has run."""
    fleet = folder / "fleet"
    (fleet / "group_vars").mkdir(parents=True)
    (fleet / "group_vars" / "all.yml").write_text(VARIABLES + ("" if len(names) == 1 else ATTACHMENTS))
    group = f"  children: {{nodes: {{hosts: {{{', '.join(f'{name}: ' for name in names)}}}}}}}"
    lines = [
        f"export ANSIBLE_LOCALHOST_WARNING=false COLUMNS={COLUMNS}",
        f"echo {shlex.quote(group)} >>inventory.yml",
        *(f"{command} >{folder}/log" for command in before),
    ]
    for number, command in enumerate(commands):
        in_terminal = f"stty cols {COLUMNS}; {command}"
        lines.append(f"script --quiet --command {shlex.quote(in_terminal)} {folder}/{number} >{folder}/log </dev/null")
    subprocess.run([PLAYGROUND, folder, *names], input="\n".join(lines), text=True, check=True)
    printed = [(folder / str(number)).read_text() for number in range(len(commands))]
    # Without the lines that script adds.
    return [re.sub(r"\AScript started.*\n|\n?Script done.*\n?\Z", "", text).strip() for text in printed]


def main(count: int, target: str) -> None:
    names = ["node1"] if count == 1 else [f"node{number:02}" for number in range(1, count + 1)]
    commands, before = [BOOTSTRAP, SMOKE, DRIFT], []
    if count > 1:
        broken = zip(reversed(names), BREAKS)
        before = [BOOTSTRAP, *(f"ansible -i inventory.yml {name} -a {shlex.quote(line)}" for name, line in broken)]
        commands = [DRIFT]
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    with tempfile.TemporaryDirectory(prefix="podwire-") as folder:
        for command, printed in zip(commands, record(Path(folder), names, before, commands)):
            console.print(Text(f"$ {command}", style="bold"))
            console.print(Text.from_ansi(printed.replace(f"{folder}/fleet", "/home/ops")), end="\n\n")
    console.save_svg(target, title=f"{count} host{'s' if count > 1 else ''}", code_format=FORMAT)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
