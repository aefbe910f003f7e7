# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Command line, a superset of cnitool: `python3 -m libcni COMMAND ...`.

The environment is cnitool's: NETCONFPATH (default /etc/cni/net.d), CNI_PATH, CAP_ARGS, CNI_ARGS, CNI_IFNAME; and
CNI_CACHE_DIR (default /var/lib/cni), CNI_CONTAINERID, CNI_NETNS_OVERRIDE. Errors go to stderr; exit status 0 or 1.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import typing as t

from . import gojson, types
from .api import CNIConfig, RuntimeConf
from .conf import NetworkConfigList, load_network_conf
from .errors import CNIError, ConfigError, ValidationError, os_error_text, quote
from .invoke import Executor
from .validate import is_host_netns, is_overridden, validate_container_id, validate_if_name

DEFAULT_NET_DIR = "/etc/cni/net.d"
DEFAULT_IF_NAME = "eth0"

_EPILOG = """environment:
  NETCONFPATH      directory of the network configurations (default /etc/cni/net.d)
  CNI_PATH         plugin directories, separated by colons
  CNI_CACHE_DIR    directory of the cache (default /var/lib/cni)
  CNI_CONTAINERID  container id (default: made of NETNS, as cnitool makes it)
  CNI_IFNAME       interface name (default eth0)
  CNI_ARGS         arguments for the plugins, KEY=VALUE;KEY=VALUE
  CAP_ARGS         arguments by capability, a JSON object
  CNI_NETNS_OVERRIDE
                   1 or TRUE: NETNS may be the network namespace of the host
"""


class _UsageError(CNIError):
    """The command line or the environment is wrong."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> t.NoReturn:
        raise _UsageError(f"{message}\n{self.format_usage().rstrip()}")


def main(argv: t.Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. `argv` without the program's name, default that of the process."""
    try:
        args = _parser().parse_args(argv)
        command: t.Callable[[argparse.Namespace], None] = args.run
        command(args)
    except (CNIError, OSError) as exc:
        path = getattr(exc, "path", "")
        prefix = f"{path}: " if isinstance(exc, ConfigError) and path and path not in str(exc) else ""
        # If it cannot be written, the exit status reports the error.
        with contextlib.suppress(OSError):
            _write(sys.stderr, f"libcni: {prefix}{exc}\n".encode("utf-8", "backslashreplace"))
        return 1
    return 0


def _parser() -> _Parser:
    parser = _Parser(
        prog="libcni",
        description="Run CNI network configurations.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(
        name: str, run: t.Callable[[argparse.Namespace], None], text: str, arguments: t.Sequence[str]
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.set_defaults(run=run)
        for argument in arguments:
            sub.add_argument(argument, metavar=argument.upper())
        return sub

    for name, run, text in (
        ("add", _add, "attach a network to a network namespace and print the result"),
        ("check", _check, "test that an attachment is unchanged"),
        ("del", _del, "detach a network from a network namespace"),
    ):
        sub = command(name, run, text, ("network", "netns"))
        sub.add_argument("-i", "--ifname", default="", help="interface name, instead of CNI_IFNAME")
    sub = command("gc", _gc, "delete a network's attachments, except those that are given as valid", ("network",))
    sub.add_argument(
        "--valid", nargs="*", action="append", metavar="ID/IFNAME", help="valid attachments; can be repeated"
    )
    sub.add_argument("--none", action="store_true", help="no attachment is valid: delete all")
    command("status", _status, "ask the plugins of a network whether they are ready", ("network",))
    command("load", _load, "print what a network's configuration says", ("network",))
    command("validate", _validate, "test a network's plugins and print its capabilities", ("network",))
    command("list-attachments", _list_attachments, "print the cached attachments", ())
    command("convert", _convert, "convert the result on stdin to another spec version", ("version",))
    sub = command("bundle", _bundle, "make one executable file of a plugin written in Python", ("plugin", "output"))
    sub.add_argument("--interpreter", default="/usr/bin/python3", help="the Python that runs it")
    return parser


# ---- the commands


def _add(args: argparse.Namespace) -> None:
    _print(_cni().add_network_list(_network(args), _runtime_conf(args)).to_json(4))


def _check(args: argparse.Namespace) -> None:
    _cni().check_network_list(_network(args), _runtime_conf(args))


def _del(args: argparse.Namespace) -> None:
    _cni().del_network_list(_network(args), _runtime_conf(args))


def _gc(args: argparse.Namespace) -> None:
    valid = _valid_attachments(args)
    _cni().gc_network_list(_network(args), valid)


def _status(args: argparse.Namespace) -> None:
    _cni().get_status_network_list(_network(args))


def _load(args: argparse.Namespace) -> None:
    conf = _network(args)
    shown = gojson.Struct(
        name=conf.name,
        cniVersion=conf.cni_version,
        disableCheck=conf.disable_check,
        disableGC=conf.disable_gc,
        plugins=[plugin.type for plugin in conf.plugins],
    )
    _print(gojson.dumps(shown, 4))


def _validate(args: argparse.Namespace) -> None:
    _print(gojson.dumps(_cni().validate_network_list(_network(args)), 4))


def _list_attachments(_args: argparse.Namespace) -> None:
    shown = [
        gojson.Struct(
            network=attachment.network,
            container_id=attachment.container_id,
            ifname=attachment.if_name,
            netns=attachment.net_ns,
            cni_args=attachment.cni_args,
            capability_args=attachment.capability_args,
        )
        for attachment in _cni().get_cached_attachments()
    ]
    _print(gojson.dumps(shown, 4))


def _convert(args: argparse.Namespace) -> None:
    result = types.create_from_bytes(sys.stdin.buffer.read() if sys.stdin else b"")
    _print(result.as_version(args.version).to_json(4))


def _bundle(args: argparse.Namespace) -> None:
    from . import bundle

    try:
        bundle.write(bundle.bundle(args.plugin, args.interpreter), args.output)
    except (SyntaxError, ValueError) as exc:
        raise CNIError(f"{args.plugin} cannot be bundled: {exc}") from exc


# ---- shared by the commands


def _print(data: bytes) -> None:
    try:
        _write(sys.stdout, data + b"\n")
    except OSError as exc:
        raise CNIError(os_error_text("write", "/dev/stdout", exc)) from exc


def _write(stream: t.TextIO | None, data: bytes) -> None:
    # Unbuffered: text that cannot be written would stay in the buffer, and the interpreter, which tries again when it
    # ends, would change the exit status. None: the stream was closed from the start; Go then opens /dev/null.
    if stream is not None and stream.isatty():
        data = _visible(data)
    while data and stream is not None:
        data = data[os.write(stream.fileno(), data) :]


def _visible(data: bytes) -> bytes:
    """Return the text with JSON escapes for terminal controls and invisible characters.

    The text is from plugins. A program that reads the output gets what Go writes.
    """
    text = data.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() or c in "\n\t" else json.dumps(c)[1:-1] for c in text).encode()


class _Stderr(io.RawIOBase):
    """The stream for the stderr of plugins that succeed."""

    def write(self, data: t.Any) -> int:
        _write(sys.stderr, data)
        return len(data)


def _network(args: argparse.Namespace) -> NetworkConfigList:
    return load_network_conf(os.environ.get("NETCONFPATH") or DEFAULT_NET_DIR, args.network)


def _cni() -> CNIConfig:
    path = os.environ.get("CNI_PATH") or ""
    return CNIConfig(
        path.split(":") if path else [],
        os.environ.get("CNI_CACHE_DIR") or None,
        executor=Executor(stderr=t.cast("t.BinaryIO", _Stderr())),
    )


def _runtime_conf(args: argparse.Namespace) -> RuntimeConf:
    net_ns = os.path.abspath(args.netns)
    # Go's skel refuses it only in the plugin, after the work is done.
    if not is_overridden(os.environ.get("CNI_NETNS_OVERRIDE", "")) and is_host_netns(net_ns):
        raise _UsageError(
            f"host_netns: {quote(net_ns)} is the network namespace of this host, not that of a container; set "
            "CNI_NETNS_OVERRIDE=1 to use it anyway"
        )
    return RuntimeConf(
        os.environ.get("CNI_CONTAINERID") or default_container_id(net_ns),
        net_ns,
        args.ifname or os.environ.get("CNI_IFNAME") or DEFAULT_IF_NAME,
        parse_args(os.environ.get("CNI_ARGS") or ""),
        _capability_args(os.environ.get("CAP_ARGS") or ""),
    )


def default_container_id(net_ns: str) -> str:
    """Return the container id that cnitool makes of a netns' absolute path."""
    import hashlib

    return "cnitool-" + hashlib.sha512(os.fsencode(net_ns)).digest()[:10].hex()


def parse_args(text: str) -> list[tuple[str, str]]:
    """Split KEY=VALUE;KEY=VALUE as cnitool does: neither part may be empty. Raises `CNIError`."""
    pairs = []
    for pair in text.split(";") if text else ():
        parts = pair.split("=")
        if len(parts) != 2 or not parts[0] or not parts[1]:
            raise _UsageError(f"invalid CNI_ARGS pair {quote(pair)}")
        pairs.append((parts[0], parts[1]))
    return pairs


def _capability_args(text: str) -> dict[str, t.Any]:
    try:
        return gojson.as_object(gojson.loads(os.fsencode(text)), "") if text else {}
    except ConfigError as exc:
        raise _UsageError(f"CAP_ARGS: {exc}") from exc


def _valid_attachments(args: argparse.Namespace) -> list[tuple[str, str]]:
    given: list[list[str]] = args.valid or []
    # Without any, or with an empty variable of a script, all attachments would be deleted.
    if args.none == bool(given) or not all(given):
        raise _UsageError("gc needs either --valid with at least one ID/IFNAME, or --none to delete all attachments")
    return [_attachment(text) for texts in given for text in texts]


def _attachment(text: str) -> tuple[str, str]:
    container_id, _slash, if_name = text.partition("/")
    try:
        validate_container_id(container_id)
        validate_if_name(if_name)
    except ValidationError as exc:
        raise _UsageError(f"--valid takes ID/IFNAME, not {quote(text)}: {exc}") from exc
    return container_id, if_name


if __name__ == "__main__":
    raise SystemExit(main())
