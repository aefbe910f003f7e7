# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.plugins.module_utils._host.info import (
    attachments,
    conf,
    gather as gathering,
    kernel,
)
from ansible_collections.podwire.cni.plugins.module_utils._host.manifest import Manifest
from ansible_collections.podwire.cni.plugins.module_utils._host.runtimes import effective
from ansible_collections.podwire.cni.plugins.module_utils._host.trials import audit
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import raising

SETS = ["conf", "plugins", "attachments", "leases", "kernel", "audit", "garbage", "runtime", "readiness"]

# What each set is read with, and which rows are None if that fails.
READERS = {
    (conf, "conf"): {"conf"},
    (conf, "plugins"): {"plugins"},
    (gathering, "plugins_in"): set(),
    (attachments, "attachments"): {"attachments"},
    (attachments, "leases"): {"leases", "pools"},
    (kernel, "kernel"): {"kernel"},
    (audit.Audit, "run"): {"audit"},
    (effective, "Effective"): {"runtime", "readiness"},
}


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.setattr(
        gathering, "Manifest", lambda **options: Manifest(str(tmp_path / "state"), **options), raising=True
    )
    paths = {name: str(tmp_path / name) for name in ("conf_dir", "cache_dir")}
    return SimpleNamespace(params=dict(paths, bin_dirs=[str(tmp_path / "bin")], gather=None))


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: f"{reader[0].__name__.rpartition('.')[2]}.{reader[1]}")
def test_what_cannot_be_read_is_a_problem_and_hides_nothing_else(module, monkeypatch, reader):
    sound = gathering.gather(module.params, SETS)

    monkeypatch.setattr(*reader, raising(HostError("it cannot be read", code="unreadable")))
    found = gathering.gather(module.params, SETS)
    problem = {"level": "error", "code": "unreadable", "message": "it cannot be read"}
    assert [{key: row[key] for key in problem} for row in found.pop("problems")] == [problem, *sound.pop("problems")]
    assert {key for key in found if found[key] is None} == READERS[reader]
    assert {key: row for key, row in found.items() if row is not None} == {
        key: row for key, row in sound.items() if key not in READERS[reader]
    }


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\\0", '{"version": 1}', '{"version": 99}'])
def test_a_damaged_manifest_is_a_problem_and_hides_nothing(module, tmp_path, text):
    sound = gathering.gather(module.params, SETS)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "manifest.json").write_text(text)
    found = gathering.gather(module.params, SETS)
    assert [row["code"] for row in found.pop("problems")] in (["manifest_damaged"], ["manifest_version"])
    sound.pop("problems")
    assert found == sound
