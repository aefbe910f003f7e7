# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

ZEROS = "0" * 64

# {new} is a directory with plugins, {work} one with a file. No code: Ansible refuses that before the module does.
REFUSED = [
    ("bad_version", {"version": 1.0}),
    ("refused_version", {"version": "1.6.1"}),
    ("bad_checksum", {"src": "{new}", "checksum": f"sha256:{ZEROS}", "remote_src": True}),
    ("bad_source", {"src": "/nowhere/at/all.tgz"}),
    ("bad_source", {"src": "/nowhere/at/all.tgz", "remote_src": True}),
    ("bad_plugin_name", {"state": "absent", "plugins": ["../bridge"]}),
    ("unsafe_permissions", {"src": "{new}", "mode": "0775"}),
    ("bad_mode", {"src": "{new}", "mode": "0644"}),
    ("unsafe_permissions", {"src": "{new}", "owner": "nobody"}),
    ("unsafe_permissions", {"src": "{new}", "owner": "nobody-of-that-name"}),
    ("bad_group", {"src": "{new}", "group": "no-group-of-that-name"}),
    ("path_not_absolute", {"src": "{new}", "bin_dir": "opt/cni/bin"}),
    ("path_not_clean", {"src": "{new}", "bin_dir": "/opt/cni/../bin"}),
    ("bad_option", {"src": "{new}", "_source": {}}),
    (None, {}),
    (None, {"state": "absent"}),
]


@pytest.mark.parametrize(("code", "options"), REFUSED)
def test_options_are_refused_before_anything_is_installed(host, look, bin_dir, work, new, code, options):
    (work / "a.tgz").write_text("an archive\n")
    options = {
        name: value.format(new=new, work=work) if isinstance(value, str) else value for name, value in options.items()
    }
    refused = host.fail("cni_plugins", **options)
    assert refused.get("code") == code, refused["msg"]
    assert look(bin_dir, "/opt/bin", "/opt/cni/../bin", "/var/lib/podwire") == ""


@pytest.mark.parametrize(
    ("name", "code"),
    [("open", "unsafe_permissions"), ("others", "unsafe_permissions"), ("linked", "path_is_link")],
)
def test_a_directory_that_others_can_write_to_is_refused(host, work, new, name, code):
    """In check mode, an earlier task may correct it."""
    for folder in ("open", "others"):
        (work / folder).mkdir()
    (work / "open").chmod(0o777)
    os.chown(work / "others", 1, -1)
    (work / "linked").symlink_to("others")
    options = {"src": new, "plugins": ["loopback"], "bin_dir": str(work / name)}
    assert host.fail("cni_plugins", **options)["code"] == code
    check = host.attempt("cni_plugins", check_mode=True, **options)
    said = [(row["level"], row["code"]) for row in check.get("findings", [])]
    assert check.get("code") == code if name == "linked" else said == [("error", code)]
    assert os.listdir(work / "open") == os.listdir(work / "others") == []
