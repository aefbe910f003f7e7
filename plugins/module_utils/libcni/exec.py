# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Running a plugin for its result (Go: pkg/invoke/exec.go)."""

from __future__ import annotations

import os

from . import gojson, types, version
from .errors import ERR_UNKNOWN, JSONError, PluginError, ResultError
from .invoke import Executor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t


def exec_plugin_with_result(
    path: str, net_conf: bytes, env: t.Mapping[str, str], executor: Executor, timeout: float | None = None
) -> types.Result:
    """Run the plugin at `path` and decode what it prints; `timeout` in seconds.

    As in Go, a result of another version than the configuration's is accepted. Raises `PluginError`, also for
    output that is not a result.
    """
    stdout = executor.exec_plugin(path, net_conf, env, timeout)
    try:
        return types.create(*fixup_result_version(net_conf, stdout))
    except (JSONError, ResultError) as exc:
        raise PluginError(
            ERR_UNKNOWN, str(exc), plugin=os.path.basename(path), stderr=getattr(stdout, "stderr", ""), cause=exc
        ) from exc


def fixup_result_version(net_conf: bytes, data: bytes) -> tuple[str, bytes]:
    """Return a plugin's output with the version to decode it as: its own, else the configuration's, set in the output.

    Raises `JSONError`.
    """
    conf_version = version.decode_config_version(net_conf)
    try:
        raw = gojson.as_object(gojson.loads(data), "")
    except JSONError as exc:
        raise JSONError(f"failed to unmarshal raw result: {exc.msg}", line=exc.line, column=exc.column) from exc
    own = raw.get("cniVersion")
    if own and isinstance(own, str):
        return own, data
    raw["cniVersion"] = conf_version
    return conf_version, gojson.dumps(raw)
