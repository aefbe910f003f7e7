# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import shutil
import socket

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


@pytest.fixture
def host(tmp_path, repository, keys):
    made = Puller(tmp_path, repository.path)
    (made.state / "keys").mkdir(parents=True)
    public = keys["team"].with_suffix(".pub").read_text()
    (made.state / "keys" / "allowed_signers").write_text(f"team@example.org {public}")
    yield made
    shutil.rmtree(made.state)


@pytest.fixture
def quick(host, repository, tmp_path):
    """A host whose Ansible only notes the words of the playbook, for tests of what comes before."""
    programs = tmp_path / "quick"
    programs.mkdir()
    for name, text in {"ansible-inventory": "", "ansible-playbook": f"cat local.yml >>{host.ran}"}.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    host.config["ansible_path"] = str(programs)
    repository.write("local.yml", "first\n")
    repository.commit()
    return host


@pytest.fixture
def silent():
    """A server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]
