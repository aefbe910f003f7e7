# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Tests that the comparison finds bugs: mutants.py DRIVER RECORDER.

Each mutant is a copy of this collection's libcni with one bug, most of them where a documented difference could hide
it. The comparison has to disagree about every one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import typing as t

HERE = os.path.dirname(os.path.abspath(__file__))
LIBCNI = os.path.join(HERE, "..", "..", "..", "plugins", "module_utils", "libcni")


class Mutant(t.NamedTuple):
    """A bug: what stands in a file, what stands there instead, and the category whose cases have to find it."""

    bug: str
    file: str
    sound: str
    broken: str
    category: str


MUTANTS = (
    Mutant(
        "DEL removes another attachment's cache file",
        "cache.py",
        "    if entry is None or entry.is_of(network, container_id, if_name):\n        _remove(path)",
        "    if True:\n        _remove(path)",
        "cache",
    ),
    Mutant(
        "a plugin gets another attachment's result as prevResult",
        "api.py",
        "        cache.check_owner(entry, path, name, rt.container_id, rt.if_name)\n        data =",
        "        data =",
        "cache",
    ),
    Mutant(
        "ADD overwrites another attachment's cache file",
        "cache.py",
        "    if entry is not None:\n        check_owner(entry, path, network, container_id, if_name)\n    return path",
        "    return path",
        "cache",
    ),
    Mutant(
        "the last plugin of the drop-in folder is cached twice",
        "conf.py",
        "for plugin in self.plugins]\n        return gojson.dumps(raw)",
        "for plugin in [*self.plugins, self.plugins[-1]]]\n        return gojson.dumps(raw)",
        "verbs",
    ),
    Mutant(
        "a moderately nested configuration is refused",
        "gojson.py",
        "        value = decode(text)",
        "        if text.count('[') > 250:\n            raise RecursionError\n        value = decode(text)",
        "json",
    ),
    Mutant(
        "an empty object in a list of a result is refused as null is",
        "fields.py",
        '    if value is None:\n        raise JSONError(f"json: cannot unmarshal null into',
        '    if not value:\n        raise JSONError(f"json: cannot unmarshal null into',
        "results",
    ),
    Mutant(
        "DEL of a single plugin fails on a broken cache entry",
        "api.py",
        "cached_result_for_del(self.cache_dir, net.name",
        "cached_result_for_check(self.cache_dir, net.name",
        "plugins",
    ),
    Mutant(
        "gc keeps the attachments of the last --valid only",
        "cli.py",
        "for texts in given for text in texts]",
        "for texts in given[-1:] for text in texts]",
        "gc",
    ),
    Mutant(
        "GC leaves entries alone that have an ordinary container id",
        "api.py",
        "            try:\n                _validate(lst.name, rt)",
        "            if '-' in rt.container_id:\n                continue\n"
        "            try:\n                _validate(lst.name, rt)",
        "gc",
    ),
    Mutant(
        "a plugin gets the arguments of capabilities that it has switched off",
        "api.py",
        "        if enabled and capability in rt.capability_args",
        "        if capability in rt.capability_args",
        "verbs",
    ),
    Mutant(
        "DEL passes no prevResult on",
        "api.py",
        'self._run("DEL", lst.name, lst.cni_version, plugin, cached, rt)',
        'self._run("DEL", lst.name, lst.cni_version, plugin, None, rt)',
        "errors",
    ),
    Mutant(
        "CHECK fails if the network has disableCheck and the cache is broken",
        "api.py",
        "        if lst.disable_check:\n            return\n        cached = _cached_result_for_check"
        "(self.cache_dir, lst.name, lst.cni_version, rt)\n",
        "        cached = _cached_result_for_check(self.cache_dir, lst.name, lst.cni_version, rt)\n"
        "        if lst.disable_check:\n            return\n",
        "cache",
    ),
)


def plant(mutant: Mutant, directory: str) -> None:
    """Put libcni with a bug into a directory."""
    shutil.copytree(LIBCNI, os.path.join(directory, "libcni"), ignore=shutil.ignore_patterns("__pycache__"))
    path = os.path.join(directory, "libcni", mutant.file)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if text.count(mutant.sound) != 1:
        raise SystemExit(f"{mutant.file} does not contain once what the mutant changes ({mutant.bug}): {mutant.sound}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(mutant.sound, mutant.broken))


def main() -> int:
    """Try all mutants."""
    survivors = 0
    for mutant in MUTANTS:
        with tempfile.TemporaryDirectory() as directory:
            plant(mutant, directory)
            argv = [sys.executable, os.path.join(HERE, "peer.py"), *sys.argv[1:]]
            argv += ["--stop", "--category", mutant.category, "--cases", "200"]
            environment = {**os.environ, "PEER_MODULE_UTILS": directory}
            done = subprocess.run(argv, env=environment, text=True, capture_output=True, check=False)
        found = done.returncode == 1 and " disagrees; to repeat it: " in done.stdout
        print(f"{'found' if found else 'NOT FOUND'}: {mutant.bug}", flush=True)
        if not found:
            survivors += 1
            print(f"{done.stdout}{done.stderr}")
    print(f"{len(MUTANTS) - survivors} of {len(MUTANTS)} planted bugs found")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
