# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.podwire.cni.plugins.filter import cni_report as module
from ansible_collections.podwire.cni.plugins.plugin_utils._report.record import build

cni_report = module.FilterModule().filters()["cni_report"]
RECORD = build("web1", {}, {})


def test_json_is_the_default():
    assert json.loads(cni_report([RECORD]))["hosts"] == [RECORD | {"attention": []}]


def test_html_is_a_page():
    assert cni_report([RECORD], "html").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(("value", "format_"), [({}, "json"), ("x", "json"), ([], "pdf")])
def test_misuse_is_an_error_of_the_filter(value, format_):
    with pytest.raises(AnsibleFilterError, match="cni_report"):
        cni_report(value, format_)
