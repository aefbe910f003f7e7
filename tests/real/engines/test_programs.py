# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks by ansible-runner and ansible-navigator, as docs/awx.md shows, on the three hosts of the playground."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "tools"))
import tutorial  # noqa: E402

PAGE = ROOT / "docs" / "awx.md"
MARKED = re.compile(
    r"^<!-- not run: the session engines runs it -->\n\s*(?P<block>```(?:console|sh)\n.*?^```$)",
    re.MULTILINE | re.DOTALL,
)
SLICES = re.compile(MARKED.pattern.replace("runs it", "runs it on three hosts"), MARKED.flags)
NETWORK = {
    "cniVersion": "1.0.0",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "apps0",
            "isGateway": True,
            "mtu": 1400,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/24"}]]},
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}
# web3 cannot be reached.
AWAY = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}


SHOWN = r"s/\x1b\[K[A-Za-z0-9+\/=]*\x1b\[[0-9]*D//g; s/\x1b\[K//g"


def follow(folder: Path, page: str, hosts: dict) -> Path:
    """Follow *page* in a directory with fleet/inventory, and return that; the lines are in followed.txt."""
    work = folder / "ops"
    inventory = work / "fleet" / "inventory"
    (inventory / "group_vars").mkdir(parents=True)
    archive = work / "cni-plugins.tgz"
    owner = ("--owner=root", "--group=root")
    subprocess.run(["tar", "-czf", archive, *owner, "-C", os.environ["PODWIRE_PLUGINS"], "."], check=True)
    variables = {"cni_plugins_src": str(archive), "cni_plugins_names": ["bridge", "host-local", "loopback", "portmap"]}
    variables["cni_networks"] = [{"name": "apps", "conflist": NETWORK}]
    (inventory / "group_vars" / "all.yml").write_text(yaml.safe_dump(variables))
    # After hosts.yml, so that it counts.
    (inventory / "later.yml").write_text(yaml.safe_dump({"all": hosts}))
    prepare = [f"cp inventory.yml {inventory}/hosts.yml", f"cd {work}", "export ANSIBLE_NOCOLOR=true"]
    # They read what would be the next commands, and do not end their last line. A terminal shows nothing of the
    # sequences in which events are hidden.
    once = f'%s() {{ command %s "$@" </dev/null | sed "{SHOWN}"; set -- $?; echo; return $1; }}'
    prepare += ["set -o pipefail", *(once % (name, name) for name in ("ansible-runner", "ansible-navigator"))]
    playground = [str(ROOT / "demo" / "playground.sh"), str(folder / "playground")]
    (work / "followed.txt").write_text("\n".join(tutorial.follow(page, playground, prepare)) + "\n")
    return work


@pytest.fixture(scope="module")
def ops(tmp_path_factory):
    """The directory in which the commands of the page have run."""
    blocks = [block["block"] for block in MARKED.finditer(PAGE.read_text(encoding="utf-8"))]
    return follow(tmp_path_factory.mktemp("engines"), "\n\n".join(blocks), {"hosts": {"web3": AWAY}})


def events(folder):
    paths = sorted(folder.glob("job_events/*.json"), key=lambda path: int(path.name.partition("-")[0]))
    return [json.loads(path.read_text()) for path in paths]


def test_the_commands_print_what_the_page_says(ops):
    lines = (ops / "followed.txt").read_text().splitlines()
    assert not [line for line in lines if not line.startswith("  [ok] ")], "\n".join(lines)
    for program in ("ansible-runner", "ansible-navigator"):
        for name in ("bootstrap", "drift", "remediate"):
            assert any(program in line and f"podwire.cni.{name}" in line for line in lines), (program, name)


def test_no_playbook_is_a_file_of_the_user(ops):
    assert list(ops.glob("fleet/inventory/*")) and not list(ops.rglob("project"))
    assert not [path for path in ops.glob("**/*.yml") if "inventory" not in path.parts]


def test_artifacts_say_what_was_found(ops):
    (stats,) = [event for event in events(ops / "fleet/artifacts/drift") if event["event"] == "playbook_on_stats"]
    found = stats["event_data"]["artifact_data"]["cni_drift"]
    assert found["counts"] == {"hosts": 3, "clean": 1, "drift": 1, "error": 1, "attention": 2}
    assert found["hosts"]["drift"] == ["web1"] and found["hosts"]["error"] == ["web3"]


WORKFLOW = """\
```console
$ %s fleet web1,web2,web3 $PWD/report
canaries all: successful, sets cni_canary, cni_canary_passed, cni_drift
slices web1: successful, sets ...
slices web2: successful, sets cni_canary, cni_canary_passed, cni_drift
slices web3: successful, sets cni_canary, cni_canary_passed, cni_drift
report all: successful, sets cni_drift
$ ansible-playbook -i fleet/inventory podwire.cni.drift -e cni_report_dir=after
...
        "All 3 hosts are clean",
...
```
"""


def test_the_workflow_repairs_the_canaries_first(tmp_path):
    """After bootstrap and drift in slices, as the page shows."""
    (slices,) = SLICES.finditer(PAGE.read_text(encoding="utf-8"))
    program = f"{sys.executable} {ROOT}/tests/real/engines/workflow.py"
    page = slices["block"] + "\n\n" + WORKFLOW % program
    work = follow(tmp_path, page, {"children": {"canaries": {"hosts": {"web1": {}}}}})
    lines = (work / "followed.txt").read_text().splitlines()
    assert not [line for line in lines if not line.startswith("  [ok] ")], "\n".join(lines)
    changed = {}
    for folder in (work / "fleet" / "artifacts").glob("*-*"):
        ran = [event for event in events(folder) if event["event"] == "playbook_on_stats"]
        changed[folder.name] = sorted(ran[0]["event_data"]["changed"])
    assert changed == {
        "canaries-all": ["web1"],
        "slices-web1": [],
        "slices-web2": ["web2"],
        "slices-web3": ["web3"],
        "report-all": [],
    }
    report = json.loads((work / "report" / "report.json").read_text())
    assert report["counts"] == {"hosts": 3, "clean": 3, "drift": 0, "error": 0, "attention": 0}
