# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import sys

from ansible_collections.podwire.cni.plugins.plugin_utils._conf.schema import jsonschema_needed
from ansible_collections.podwire.cni.plugins.plugin_utils._conf.spelling import unsupported


def test_jsonschema_is_a_package_of_the_distribution_where_pip_is_forbidden(monkeypatch):
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    text = jsonschema_needed("validation", "no module")
    assert text == (
        "validation needs the Python library jsonschema on the controller (no module); "
        "install the package python3-jsonschema"
    )


def test_jsonschema_comes_by_pip_in_a_virtual_environment(monkeypatch):
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    assert jsonschema_needed("x", "y").endswith(f"; run {sys.executable} -m pip install jsonschema")


def test_unknown_options_are_refused_in_the_words_of_ansible_with_did_you_mean():
    assert unsupported(["src", "mode"], ("src", "mode")) == []
    text = "Unsupported parameters for (podwire.cni.cni_plugins) module: sorce (did you mean source?), zzz, 1. "
    text += "Supported parameters include: source, src"
    assert unsupported(["sorce", "zzz", 1], ("src", "source"), "cni_plugins") == [text]
    assert unsupported(["nmae"], ("name",), section="netns.") == [
        "Unsupported parameters: netns.nmae (did you mean netns.name?). Supported parameters include: name"
    ]
