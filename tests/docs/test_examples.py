# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of the documentation, each page on a host that has never seen CNI.

The yaml blocks that are a list of tasks or a list of plays run in their order. A block after the line
`<!-- not run: REASON -->` is left out, and so are blocks that are neither (variables, inventories). A page causes the
warnings that it names, and no others.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).parent
COLLECTION = HERE.parents[1]
PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")
BLOCK = re.compile(r"^(?P<skip><!-- not run: [^\n]+ -->\n\s*)?```yaml\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
WARNS = re.compile(r"^<!-- warns: (\w+) -->$", re.MULTILINE)
# They build on each other.
ROLES = tuple(f"roles/{name}/README.md" for name in ("plugins", "networks", "attachments", "host"))
DOCS = {str(path.relative_to(COLLECTION)): path.stem for path in sorted((COLLECTION / "docs").rglob("*.md"))}
# Pages whose examples share a host. A page with other blocks only has a test, too: its blocks must be YAML.
HOSTS = {"roles": ROLES, **{page: (page,) for page in DOCS if BLOCK.search((COLLECTION / page).read_text())}}
# Their examples install plugins, and start without any.
INSTALLING = {"roles", "docs/cni_plugins.md"}
INSTALLING |= {f"docs/howto/{name}.md" for name in ("air-gapped", "kubespray", "loopback")}
# What a host may have before it follows a page: networks of others, with an address that is taken.
BUSY = """
mkdir -p -m 0755 /etc/cni/net.d /var/lib/cni/networks/other
ipam='{"type": "host-local", "ranges": [[{"subnet": "10.199.0.0/24"}]]}'
plugins='[{"type": "bridge", "bridge": "other0", "ipam": '$ipam'}]'
echo '{"cniVersion": "1.0.0", "name": "other", "plugins": '$plugins'}' >"/etc/cni/net.d/$0-other.conflist"
echo '{"cniVersion": "0.4.0", "name": "legacy", "plugins": [{"type": "loopback"}]}' >/etc/cni/net.d/95-legacy.conflist
printf 'elsewhere\r\neth0' >/var/lib/cni/networks/other/10.199.0.7
exec "$@"
"""
INSTALL_PLUGINS = 'mkdir -p -m 0755 /opt/cni/bin && cp "$0"/* /opt/cni/bin/ && exec "$@"'


def examples(page: str) -> list[list[dict]]:
    """Return the blocks of a page that must run, parsed."""
    found = []
    for block in BLOCK.finditer((COLLECTION / page).read_text()):
        parsed = yaml.safe_load(block["text"])
        if not block["skip"] and isinstance(parsed, list) and all(isinstance(entry, dict) for entry in parsed):
            found.append(parsed)
    return found


def plays(page: str) -> list[dict]:
    """Return the plays that run the examples of a page one after another."""
    found = []
    for number, block in enumerate(examples(page), 1):
        if "hosts" in block[0] or "ansible.builtin.import_playbook" in block[0]:
            found.extend(block)
        else:
            name = f"Example {number} of {page}"
            found.append({"name": name, "hosts": "all", "gather_facts": False, "become": True, "tasks": block})
    return found


@pytest.fixture(scope="session")
def settings():
    return yaml.safe_load((HERE.parent / "integration" / "integration_config.yml").read_text())


@pytest.fixture(scope="session")
def archive(settings, tmp_path_factory):
    """The plugins as a release has them, which pages take from `files/` beside the playbook."""
    path = tmp_path_factory.mktemp("archive") / "cni-plugins.tgz"
    # Nobody needs it small.
    command = ["tar", "--create", "--use-compress-program=gzip -1", f"--file={path}", "--owner=root", "--group=root"]
    subprocess.run([*command, f"--directory={settings['cni_test_plugins_old']}", "."], check=True)
    return path


@pytest.mark.xdist_group("docs")
def test_modules_have_pages_with_examples():
    modules = {path.stem for path in (COLLECTION / "plugins" / "modules").glob("cni_*.py")}
    pages = {stem: page for page, stem in DOCS.items() if stem.startswith("cni_")}
    assert modules and modules <= set(pages)
    assert [page for page in pages.values() if not examples(page)] == []


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in HOSTS])
@pytest.mark.parametrize("host", ["empty", "busy"])
def test_examples(host, name, settings, archive, tmp_path, run_privately):
    """Run all examples of a page as one playbook, those of how-to guides also on a host that has other networks."""
    if host == "busy" and not name.startswith("docs/howto/"):
        # The other pages begin with a host of their own.
        pytest.skip("not a how-to guide")
    playbook = [play for page in HOSTS[name] for play in plays(page)]
    if not playbook:
        return
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / archive.name).hardlink_to(archive)
    # JSON is YAML, and keeps strings strings.
    (tmp_path / "playbook.yml").write_text(json.dumps(playbook, indent=2))
    (tmp_path / "ansible.cfg").write_text("[defaults]\nnocolor = true\n[connection]\npipelining = true\n")
    prepare = [] if name in INSTALLING else ["bash", "-c", INSTALL_PLUGINS, settings["cni_test_plugins_old"]]
    # Taking over a directory changes which of its files is the first one, unless that is the page's own.
    prepare += ["bash", "-c", BUSY, "88" if "migrate" in name else "05"] if host == "busy" else []
    (tmp_path / "hosts").write_text("[nodes]\nhost\n")
    command = [PLAYBOOK, "-i", tmp_path / "hosts", "-c", "local", "-e", "ansible_python_interpreter=/usr/bin/python3"]
    output = run_privately({"ANSIBLE_CONFIG": tmp_path / "ansible.cfg"}, *prepare, *command, tmp_path / "playbook.yml")
    warned = {re.sub(r"^\[(\w+)\].*", r"\1", text) for text in re.findall(r"\[WARNING\]: (.*)", output)}
    # What a page breaks on purpose is in a comment, `<!-- warns: CODE -->`.
    assert warned == {code for page in HOSTS[name] for code in WARNS.findall((COLLECTION / page).read_text())}, output
