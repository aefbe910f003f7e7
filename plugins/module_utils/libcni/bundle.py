# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Makes one executable file of a plugin and of what it imports of libcni: `python3 -m libcni bundle PLUGIN OUTPUT`.

The file is a script (`#!`) whose last two lines, comments, hold each module as bytecode of the Python that made it, and
as source for other versions. Compiling would cost a call half as much again; nobody writes bytecode beside a plugin.
An archive would do, too, but to run one, Python imports modules that take longer than the plugin's own work. Equal
input makes equal bytes.
"""

from __future__ import annotations

import ast
import base64
import importlib.util
import marshal
import os
import re
import zlib

from . import _HOME_OF

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

INTERPRETER = "/usr/bin/python3"
# What runs the modules. `binascii` is what `base64` is made of, and is there at once.
_LOADER = """\
import binascii, marshal, sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER


class Bundle:
    def __init__(self):
        self.compiled = {magic!r} == MAGIC_NUMBER
        with open(__file__, "rb") as file:
            source, bytecode = file.read().rsplit(b"\\n#", 2)[1:]
        if self.compiled:
            self.modules = marshal.loads(binascii.a2b_base64(bytecode))
        else:
            import zlib

            self.modules = marshal.loads(zlib.decompress(binascii.a2b_base64(source)))

    def find_spec(self, name, path=None, target=None):
        if name in self.modules:
            return ModuleSpec(name, self, is_package=self.modules[name][0])

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        self.run(module.__name__, vars(module))

    def run(self, name, scope):
        _package, path, text = self.modules[name]
        exec(marshal.loads(text) if self.compiled else compile(text, path, "exec", dont_inherit=True), scope)


sys.meta_path.insert(0, Bundle())
sys.meta_path[0].run("__main__", globals())
"""


def bundle(plugin: str, interpreter: str = INTERPRETER) -> bytes:
    """Return the executable for the plugin in the file `plugin`, which is a plugin when it is run.

    The file imports `libcni`. Or it has relative imports and a function `main`: then what it imports is taken along.
    `interpreter`: the absolute path of the Python of its first line. Raises OSError, SyntaxError.
    """
    folder, name = os.path.split(os.path.abspath(plugin))
    module, source = os.path.splitext(name)[0], _read(plugin)
    if any(_imported(source, "package")):
        module = f"{os.path.basename(folder)}.{module}"
        sources = _with_imports(os.path.dirname(folder), [module], "podwire.")
        main = f"from podwire.{module} import main\n\nmain()\n".encode()
        return _script({**sources, "podwire/__init__.py": b"", "__main__.py": main}, interpreter)
    libcni = os.path.dirname(os.path.abspath(__file__))
    sources = _with_imports(os.path.dirname(libcni), ["libcni", *_used(libcni, source)], "")
    return _script({**sources, "__main__.py": source}, interpreter)


def _used(folder: str, source: bytes) -> t.Iterator[str]:
    """Yield the modules of libcni that a program may use: those that a word of it is the name of, or is found in."""
    for word in set(re.findall(r"\b[a-zA-Z]\w*", source.decode("utf-8", "replace"))):
        name = _HOME_OF.get(word, word)
        path, is_package = _find(folder, name)
        if path:
            yield f"libcni.{name}"
        if is_package:
            yield from (f"libcni.{name}.{file[:-3]}" for file in os.listdir(f"{folder}/{name}") if file.endswith(".py"))


def _with_imports(root: str, modules: list[str], package: str) -> dict[str, bytes]:
    """Return the sources of modules and of what they import, now or later, each with its path in the script."""
    sources: dict[str, bytes] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        path, is_package = _find(root, name)
        arcname = package.replace(".", "/") + os.path.relpath(path, root)
        if arcname not in sources:
            sources[arcname] = _read(path)
            parent = name if is_package else name.rpartition(".")[0]
            waiting += [imported for imported in _imported(sources[arcname], parent) if _find(root, imported)[0]]
            waiting += [parent] if parent else []
    return sources


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


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _script(sources: t.Mapping[str, bytes], interpreter: str) -> bytes:
    """Return the script. *sources*: path -> source, of packages from the directory of the plugin."""
    modules, compiled = {}, {}
    for path in sorted(sources):
        name, package = os.path.splitext(path)[0].replace("/", "."), path.endswith("/__init__.py")
        name = name.rpartition(".")[0] if package else name
        modules[name] = package, path, sources[path]
        # Nobody reads the docstrings of a library there. A plugin may have assertions.
        optimize = 0 if name == "__main__" else 2
        code = compile(sources[path], path, "exec", dont_inherit=True, optimize=optimize)
        compiled[name] = package, path, marshal.dumps(code)
    # -I: nothing of the environment or the working directory. -S: no site-packages.
    lines = [f"#!{interpreter} -IS\n{_LOADER.format(magic=importlib.util.MAGIC_NUMBER)}".encode()]
    lines += [
        b"#" + base64.b64encode(data) for data in (zlib.compress(marshal.dumps(modules), 9), marshal.dumps(compiled))
    ]
    return b"\n".join(lines) + b"\n"


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
