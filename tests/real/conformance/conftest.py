# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def releases():
    """The directories of the reference plugins of both generations, ``old`` (1.1.1) and ``new`` (1.9.1)."""
    settings = yaml.safe_load((ROOT / "tests" / "integration" / "integration_config.yml").read_text())
    return {name: settings[f"cni_test_plugins_{name}"] for name in ("old", "new")}


class Judged:
    """The outcome of `python3 -m conformance`: exit status, what was printed, the report as JSON."""

    def __init__(self, done, path):
        self.status = done.returncode
        self.stdout = done.stdout
        self.stderr = done.stderr
        self.report = json.loads(path.read_text()) if path.exists() else None

    def clauses(self, status):
        return {entry["clause"] for entry in self.report["verdicts"] if entry["status"] == status}


@pytest.fixture
def conformance(tmp_path):
    """Return a function that judges a plugin; the words are options of the command line."""

    def run(plugin, *words):
        path = tmp_path / "report.json"
        command = [sys.executable, "-m", "conformance", str(plugin), "--json", str(path), *words]
        return Judged(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False), path)

    return run


@pytest.fixture
def make_plugin(tmp_path):
    """Return a function that installs a plugin of this directory with a fault, and writes its configuration."""

    def make(source, fault="", **conf):
        path = tmp_path / "bin" / source.partition("_")[0]
        path.parent.mkdir(exist_ok=True)
        text = Path(__file__).with_name(f"{source}.py").read_text()
        path.write_text(f"#!{sys.executable} -IS\n" + text.replace('FAULT = ""', f"FAULT = {fault!r}"))
        path.chmod(0o755)
        file = tmp_path / "conf.json"
        file.write_text(json.dumps({"type": path.name, **conf}))
        return path, "--config", str(file)

    return make
