# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Nomad's agent tells its servers of a plugin only if the plugin prints a version."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.checks import nomad


def program(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("printed", "known"),
    [
        ("CNI bridge plugin v1.9.1\n", True),
        # Releases without one of their own print the versions of the specification since 1.0.0; the last has no comma.
        ("CNI bridge plugin version unknown\nCNI protocol versions supported: 0.1.0, 0.2.0, 1.0.0\n", True),
        ("CNI bridge plugin version unknown\n", False),
        ("CNI bridge plugin v0.3.0\n", False),
        ("CNI dnsname plugin\nversion: 1.3.1\ncommit: unknown\n", True),
        ("", False),
    ],
)
def test_a_plugin_has_to_print_its_version(tmp_path, monkeypatch, printed, known):
    program(tmp_path / "bin" / "bridge", "")
    monkeypatch.setattr(nomad, "about_plugin", lambda _path, _timeout: printed)
    found = list(nomad.not_fingerprinted(["bridge", "portmap"], [str(tmp_path / "bin")]))
    assert [entry.code for entry in found] == ([] if known else ["not_fingerprinted"])


@pytest.mark.parametrize(("first", "known"), [("missing", False), ("empty", False), ("full", True)])
def test_its_search_ends_at_a_directory_without_plugins(tmp_path, monkeypatch, first, known):
    program(tmp_path / "bin" / "bridge", "")
    program(tmp_path / "full" / "other", "")
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(nomad, "about_plugin", lambda _path, _timeout: "CNI bridge plugin v1.9.1")
    found = list(nomad.not_fingerprinted(["bridge"], [str(tmp_path / first), str(tmp_path / "bin")]))
    assert [str(tmp_path / first) in entry.evidence for entry in found] == ([] if known else [True])
