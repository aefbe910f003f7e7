# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import shutil
import socket
import sys
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.tests.play.pull.site import Puller, Repository, sh


@pytest.fixture(scope="session")
def keys(tmp_path_factory):
    directory = tmp_path_factory.mktemp("keys")
    for name in ("team", "stranger"):
        sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", directory / name)
    return {name: directory / name for name in ("team", "stranger")}


@pytest.fixture
def repository(tmp_path, keys):
    made = Repository(tmp_path / "repository", tmp_path / "ran", keys)
    made.play("first")
    made.commit()
    return made


# Notes what Repository.play makes a playbook note.
PLAYBOOK = """\
#!/bin/sh
for word; do
  case $word in *.yml) sed -n 's/.*shell: echo \\(.*\\) >>.*/\\1/p' "$word" >>{ran} ;; esac
done
"""


@pytest.fixture
def puller(tmp_path, repository, keys):
    """The program, whose Ansible only notes what the playbooks would note."""
    made = Puller(tmp_path, repository.path)
    (made.state / "keys").mkdir(parents=True)
    public = keys["team"].with_suffix(".pub").read_text()
    (made.state / "keys" / "allowed_signers").write_text(f"team@example.org {public}")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in {"ansible-inventory": "#!/bin/sh\n", "ansible-playbook": PLAYBOOK.format(ran=made.ran)}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    made.config["ansible_path"] = str(programs)
    yield made
    shutil.rmtree(made.state)


@pytest.fixture
def real(puller):
    """The program with the real Ansible."""
    puller.config["ansible_path"] = str(Path(sys.executable).parent)
    return puller


@pytest.fixture
def silent():
    """A server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]
