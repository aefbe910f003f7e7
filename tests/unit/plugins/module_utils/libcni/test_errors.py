# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Error texts and attributes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import cli, errors, gojson, netns
from ansible_collections.podwire.cni.plugins.module_utils.libcni.multi import errors as multi_errors, runner


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain", '"plain"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("\a\b\f\n\r\t\v", '"\\a\\b\\f\\n\\r\\t\\v"'),
        ("\x00\x1b\x7f", '"\\x00\\x1b\\x7f"'),
        ("\u00e9\u4e16", '"\u00e9\u4e16"'),
        ("\u200b\u2028", '"\\u200b\\u2028"'),
        ("\U000e0001", '"\\U000e0001"'),
        (b"a\xffb".decode("utf-8", "surrogateescape"), '"a\\xffb"'),
        ("\ud800", '"\ufffd"'),
    ],
)
def test_quote(text, quoted):
    assert errors.quote(text) == quoted


def test_quote_of_a_long_text():
    assert errors.quote("x" * errors.LONGEST_QUOTE) == '"' + "x" * errors.LONGEST_QUOTE + '"'
    assert errors.quote("x" * 10**6) == '"' + "x" * errors.LONGEST_QUOTE + '"...'


def test_plugin_error_text():
    assert str(errors.PluginError(100, "banana")) == "banana"
    error = errors.PluginError(7, "banana", "split", plugin="bridge", stderr="x")
    assert str(error) == "banana; split"
    assert (error.code, error.plugin, error.stderr, error.cause) == (7, "bridge", "x", None)


def test_plugin_list_error_shows_its_cause():
    cause = errors.PluginError(11, "busy", "later", plugin="bridge", stderr="trace")
    error = errors.PluginListError('type="bridge"', "add", "bridge", cause)
    assert str(error) == 'plugin type="bridge" failed (add): busy; later'
    assert (error.code, error.msg, error.details, error.stderr) == (11, "busy", "later", "trace")
    assert error.cause is cause
    assert isinstance(error, errors.PluginError)


def test_plugin_list_error_of_another_error():
    cause = errors.PluginNotFoundError('failed to find plugin "x" in path [/a]', "x", ["/a"])
    error = errors.PluginListError('type="x"', "delete", "x", cause)
    assert str(error) == 'plugin type="x" failed (delete): failed to find plugin "x" in path [/a]'
    assert (error.code, error.msg) == (0, str(cause))
    assert error.cause is cause


def test_os_error_text():
    error = OSError(2, "No such file or directory")
    assert errors.os_error_text("open", "/x", error) == "open /x: no such file or directory"
    assert errors.os_error_text("open", "/x", OSError("odd")) == "open /x: odd"


def test_all_errors_have_one_base():
    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert len(classes) > 10
    assert all(issubclass(cls, errors.CNIError) for cls in classes)


def samples():
    """Return one error of each class, with every attribute set."""
    plugin = errors.PluginError(11, "busy", "later", "bridge", "trace", errors.JSONError("bad", "/x", 2, 3))
    wrapped = errors.CNIError("failed to delete")
    wrapped.__cause__ = plugin
    return [
        errors.CNIError("text"),
        errors.VersionError("text"),
        errors.ConfigError("text", "/path", 1, 2),
        errors.JSONError("text", "/path", 1, 2),
        errors.NotFoundError("/dir", "net"),
        errors.NoConfigsFoundError("/dir"),
        errors.CheckNotSupportedError("0.3.0"),
        errors.CacheError("text", "/path"),
        errors.ResultError("text"),
        errors.PluginNotFoundError("text", "bridge", ["/a", "/b"]),
        plugin,
        errors.ValidationError(4, "text", "details"),
        errors.PluginListError('type="bridge"', "add", "bridge", plugin),
        errors.PluginListError('type="x"', "delete", "x", errors.NotFoundError("/dir", "net")),
        errors.MultiError("text", [wrapped, plugin]),
        multi_errors.NetworksError("text", "/0", "annotation", 1, 2),
        runner.AddNetworksError("text", 1, plugin, [(0, wrapped)]),
        runner.DelNetworksError("text", [(0, wrapped)]),
        netns.NamespaceError("text", True),
        netns.LinkError("text", True),
        netns._MissingError("text", True),
        cli._UsageError("text"),
        gojson._BadTokenError("1e999"),
    ]


def facts(error):
    """Return all that an error says, and those in it."""
    if isinstance(error, (list, tuple)):
        return [facts(item) for item in error]
    if not isinstance(error, BaseException):
        return error
    values = {name: facts(value) for name, value in vars(error).items()}
    return type(error), str(error), error.args, values, facts(error.__cause__)


@pytest.mark.parametrize("error", samples(), ids=lambda error: type(error).__name__)
def test_errors_round_trip_through_pickle_and_copy(error):
    copies = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for other in (*copies, copy.copy(error), copy.deepcopy(error)):
        assert other is not error
        assert facts(other) == facts(error)


def test_every_class_of_error_is_sampled():
    def below(cls):
        return {cls}.union(*map(below, cls.__subclasses__()))

    assert {cls for cls in below(errors.CNIError) if ".libcni." in cls.__module__} <= {type(one) for one in samples()}


def add(cni, lst, rt):
    """Run in another process."""
    cni.add_network_list(lst, rt)


def test_failed_add_in_a_process_pool(world):
    debug = world.debug(ReportError="busy", ReportErrorDetails="later", ReportErrorCode=11)
    # The default from Python 3.14 on leaves a server, and the descriptors that lead to it, until this process ends.
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, context) as pool, pytest.raises(errors.PluginListError) as caught:
        pool.submit(add, world.cni, world.lst([debug]), world.rt(capability_args={"a": [1]})).result()
    error = caught.value
    assert (error.code, error.msg, error.details, error.verb, error.plugin) == (11, "busy", "later", "add", "noop")
    assert (type(error.cause), str(error)) == (errors.PluginError, 'plugin type="noop" failed (add): busy; later')
