# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import sys

from ansible_collections.podwire.cni.plugins.plugin_utils.remedies import jsonschema_needed, no_options


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


def test_an_unknown_option_gets_did_you_mean_or_the_list():
    assert no_options(["src", "mode"], ("src", "mode")) == []
    assert no_options(["sorce"], ("src", "source")) == ["there is no option 'sorce'; did you mean 'source'?"]
    assert no_options(["zzz", 1], ("src", "mode")) == [
        "there is no option 'zzz'; the options are mode, src",
        "there is no option '1'; the options are mode, src",
    ]
