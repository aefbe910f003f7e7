# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""One executable of a plugin and of what it uses. tests/unit/examples runs larger ones."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import bundle, cli


def test_a_bundle_is_made_from_one_file(tmp_path, capfd):
    plugin, made = tmp_path / "my-plugin.py", tmp_path / "my-plugin"
    plugin.write_text("import libcni\nlibcni.plugin_main(about='mine')\n")
    assert cli.main(["bundle", str(plugin), str(made), "--interpreter", sys.executable]) == 0
    done = subprocess.run([made], env={"CNI_COMMAND": "VERSION"}, stdout=subprocess.PIPE, check=True, cwd="/")
    assert json.loads(done.stdout)["cniVersion"] == "1.1.0"
    assert made.stat().st_mode & 0o777 == 0o755
    assert bundle.bundle(str(plugin), sys.executable) == made.read_bytes()
    plugin.write_text("def")
    assert cli.main(["bundle", str(plugin), str(made)]) == 1
    assert f"{plugin} cannot be bundled: invalid syntax" in capfd.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my-plugin", "my-plugin.py"]


def test_another_python_uses_the_source(tmp_path):
    plugin, made = tmp_path / "plugin.py", tmp_path / "plugin"
    plugin.write_text("import libcni\nlibcni.plugin_main()\n")
    data = bundle.bundle(str(plugin), sys.executable)
    magic = repr(bundle.importlib.util.MAGIC_NUMBER).encode()
    assert data.count(magic) == 1
    # Bytecode that would not even load.
    head = data.replace(magic, b"b'other'").rpartition(b"\n#")[0]
    bundle.write(head + b"\n#AAAA\n", str(made))
    done = subprocess.run([made], env={"CNI_COMMAND": "VERSION"}, stdout=subprocess.PIPE, check=True)
    assert json.loads(done.stdout)["cniVersion"] == "1.1.0"


@pytest.mark.parametrize(
    ("text", "there", "absent"),
    [
        ("libcni.plugin_main()", {"skel", "types", "plugin_args"}, {"netns", "delegate", "api", "cli"}),
        ("libcni.ipam_add", {"delegate", "invoke"}, {"netns", "api"}),
        ("getattr(libcni, 'Net' + 'ns', None) or 'netns'", {"netns", "kernel"}, {"skel"}),
        ("from libcni.multi import pod", {"multi/pod", "multi/routes"}, {"cli"}),
        ("__main__", set(), {"cli", "__main__"}),
    ],
)
def test_a_bundle_has_what_the_plugin_names_and_no_more(tmp_path, text, there, absent):
    plugin, made = tmp_path / "plugin.py", tmp_path / "plugin"
    plugin.write_text(f"import sys\nimport libcni\nif sys.argv[1:]: {text}\nelse: print(*sys.meta_path[0].modules)\n")
    bundle.write(bundle.bundle(str(plugin), sys.executable), str(made))
    names = subprocess.run([made], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    modules = {name.partition(".")[2].replace(".", "/") for name in names}
    assert there <= modules
    assert not absent & modules
    assert "libcni" in names
