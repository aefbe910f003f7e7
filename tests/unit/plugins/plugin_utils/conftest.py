# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.podwire.cni.plugins.plugin_utils import lint

LINE = re.compile(r"(?P<file>.*?)(?::(?P<line>\d+):(?P<column>\d+))?: (?P<level>\w+): (?P<text>.*) \[(?P<code>\w+)\]")


@pytest.fixture
def lint_files(tmp_path, capsys, monkeypatch):
    """Return a function that writes and lints files, and returns (file, line, column, level, code) of each message."""
    monkeypatch.chdir(tmp_path)

    def run(files, *options):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(content, indent=1) if isinstance(content, dict) else content
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        run.status = lint.main([*options, *files])
        run.out, run.err = capsys.readouterr()
        run.texts = run.out.splitlines()
        found = [LINE.fullmatch(line) for line in run.texts]
        return [
            (match["file"], int(match["line"] or 0), int(match["column"] or 0), match["level"], match["code"])
            for match in found
        ]

    return run
