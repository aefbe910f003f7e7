# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""What importing the package costs and needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.podwire.cni.plugins.module_utils import libcni

LIBCNI = Path(libcni.__file__).parent


def python(code):
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", f"import sys; sys.path.insert(0, {str(LIBCNI.parent)!r})\n{code}"],
        stdout=subprocess.PIPE,
        check=True,
    )
    return done.stdout.decode().split()


def test_every_public_name_exists():
    assert dir(libcni)
    for name in dir(libcni):
        assert getattr(getattr(libcni, name), "__name__", name) == name
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'"):
        _value = libcni.nothing


def test_the_package_imports_none_of_its_modules():
    assert python("import libcni; print(*[name for name in sys.modules if name.startswith('libcni.')])") == []
    loaded = python("import libcni; libcni.ConfigError; print(*[n for n in sys.modules if n.startswith('libcni.')])")
    assert loaded == ["libcni.errors"]


def test_the_verbs_need_no_slow_module():
    """Every task pays for what is imported; these cost milliseconds each and are not needed."""
    slow = {"dataclasses", "inspect", "ipaddress", "logging", "socket", "hashlib", "tempfile", "random", "argparse"}
    assert not {*slow, "subprocess"} & set(python("import libcni.api; print(*sys.modules)"))


@pytest.mark.parametrize("module", sorted(path.stem for path in LIBCNI.glob("*.py") if path.stem != "__main__"))
def test_standard_library_only(module):
    code = f"import libcni.{module}; print(*[getattr(m, '__file__', '') or '' for m in list(sys.modules.values())])"
    code = code.replace("libcni.__init__", "libcni")
    files = python(code)
    assert not [path for path in files if "site-packages" in path or "ansible/" in path]
