# Copyright: (c) 2026, the podwire.cni authors
# Simplified BSD License (see LICENSES/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
# SPDX-License-Identifier: BSD-2-Clause
"""Makes one executable file of a plugin and of what it imports of libcni: `python3 -m libcni bundle PLUGIN OUTPUT`.

The file is a script (`#!`) that Python reads as a zip archive. It holds each module as source and as bytecode of the
Python that made it: Python never writes bytecode into an archive, and compiling costs a call half as much again.
Another version of Python uses the source. Equal input makes equal bytes.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import marshal
import os
import zipfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

INTERPRETER = "/usr/bin/python3"
# Of no use to a plugin.
_LEFT_OUT = ("__main__.py", "bundle.py", "cli.py")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNCHECKED = 1


def bundle(plugin: str, interpreter: str = INTERPRETER) -> bytes:
    """Return the executable for the plugin in the file `plugin`, which is a plugin when it is run.

    The file imports `libcni`. Or it has relative imports and a function `main`: then what it imports is taken along.
    `interpreter`: the absolute path of the Python of its first line. Raises OSError, SyntaxError.
    """
    folder, name = os.path.split(os.path.abspath(plugin))
    module = os.path.splitext(name)[0]
    if any(_imported(_read(plugin), "package")):
        return _bundle_module(os.path.dirname(folder), f"{os.path.basename(folder)}.{module}", interpreter)
    here = os.path.dirname(os.path.abspath(__file__))
    files = {f"libcni/{name}": os.path.join(here, name) for name in _python_files(here) if name not in _LEFT_OUT}
    return _archive({**{name: _read(path) for name, path in files.items()}, "__main__.py": _read(plugin)}, interpreter)


def _bundle_module(root: str, module: str, interpreter: str) -> bytes:
    sources: dict[str, bytes] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path, package = _find(root, name)
        arcname = "podwire/" + os.path.relpath(path, root)
        if arcname not in sources:
            sources[arcname] = _read(path)
            here = name if package else name.rpartition(".")[0]
            waiting += [one for one in _imported(sources[arcname], here) if _find(root, one)[0]]
            waiting += [here] if here else []
    sources["podwire/__init__.py"] = b""
    sources["__main__.py"] = f"from podwire.{module} import main\n\nmain()\n".encode()
    return _archive(sources, interpreter)


def _find(root: str, name: str) -> tuple[str, bool]:
    """Return the file of a module, "" if there is none, and whether it is a package."""
    path = os.path.join(root, *name.split("."))
    if os.path.isfile(os.path.join(path, "__init__.py")):
        return os.path.join(path, "__init__.py"), True
    return (f"{path}.py", False) if os.path.isfile(f"{path}.py") else ("", False)


def _imported(source: bytes, package: str) -> t.Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = package.split(".")
            base = ".".join([*parts[: len(parts) - node.level + 1], *(node.module.split(".") if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
            yield base


def _python_files(folder: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(".py"))


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _archive(sources: t.Mapping[str, bytes], interpreter: str) -> bytes:
    out = io.BytesIO()
    # -I: nothing of the environment or the working directory. -S: no site-packages.
    out.write(f"#!{interpreter} -IS\n".encode())
    with zipfile.ZipFile(out, "a") as archive:
        for name in sorted(sources):
            code = compile(sources[name], name, "exec", dont_inherit=True)
            head = importlib.util.MAGIC_NUMBER + _UNCHECKED.to_bytes(4, "little")
            bytecode = head + importlib.util.source_hash(sources[name]) + marshal.dumps(code)
            # What is not compressed needs no other module to be read.
            _put(archive, name + "c", bytecode, zipfile.ZIP_STORED)
            _put(archive, name, sources[name], zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _put(archive: zipfile.ZipFile, name: str, data: bytes, method: int) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = method
    info.external_attr = 0o644 << 16
    archive.writestr(info, data)


def write(data: bytes, target: str) -> None:
    """Write an executable, complete or not at all. Raises OSError."""
    fresh = f"{target}.{os.getpid()}.new"
    try:
        with open(fresh, "xb") as file:
            file.write(data)
            os.fchmod(file.fileno(), 0o755)
            os.fsync(file.fileno())
        os.replace(fresh, target)
    except BaseException:
        if os.path.exists(fresh):
            os.unlink(fresh)
        raise
