# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import sys

import pytest

from ansible_collections.podwire.cni.plugins.modules import cni_netns


class Failed(Exception):
    pass


def test_missing_pyroute2_is_said_with_the_packages_name_and_the_interpreter(monkeypatch):
    class Module:
        def fail_json(self, msg, code):
            raise Failed(code, msg)

    monkeypatch.setattr(cni_netns, "create_module", lambda arguments: Module())
    monkeypatch.setattr(cni_netns.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Failed) as caught:
        cni_netns.main()
    code, text = caught.value.args
    assert code == "missing_required_lib"
    assert f"pyroute2, which {sys.executable} does not have; install the package python3-pyroute2" in text
