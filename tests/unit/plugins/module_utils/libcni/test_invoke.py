# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""Finding and running plugins (Go: pkg/invoke tests; libcni.md 1.4)."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from ansible_collections.podwire.cni.plugins.module_utils.libcni import invoke, process
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import PluginError, PluginNotFoundError

ENV = {"PATH": "/usr/bin:/bin"}


def run(path, stdin=b"{}", env=None, timeout=60, executor=None):
    return (executor or invoke.Executor()).exec_plugin(str(path), stdin, env or ENV, timeout)


def failure(path, **keys):
    with pytest.raises(PluginError) as caught:
        run(path, **keys)
    return caught.value


# ---- find_in_path


def test_find_in_path(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "b" / "plugin").write_text("")
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    # A regular file is enough, executable or not.
    assert invoke.find_in_path("plugin", paths) == str(tmp_path / "b" / "plugin")
    (tmp_path / "a" / "plugin").mkdir()
    assert invoke.find_in_path("plugin", paths) == str(tmp_path / "b" / "plugin")
    (tmp_path / "a" / "link").symlink_to("../b/plugin")
    assert invoke.find_in_path("link", paths) == str(tmp_path / "a" / "link")
    assert invoke.find_in_path("plugin", [f"{tmp_path}/a/../b/"]) == str(tmp_path / "b" / "plugin")


@pytest.mark.parametrize(
    ("plugin", "paths", "text"),
    [
        ("", ["/a"], "no plugin name provided"),
        ("p", [], "no paths provided"),
        ("../p", ["/a"], "invalid plugin name: ../p"),
        ("/bin/sh", ["/a"], "invalid plugin name: /bin/sh"),
        ("nope", ["/a", "/b c"], 'failed to find plugin "nope" in path [/a /b c]'),
        ("..", ["/"], 'failed to find plugin ".." in path [/]'),
        ("a\0b", ["/"], 'failed to find plugin "a\\x00b" in path [/]'),
        ("sh", [""], 'plugin directory "" is not an absolute path'),
        ("sh", ["/bin", ""], 'plugin directory "" is not an absolute path'),
        ("sh", ["bin", "/bin"], 'plugin directory "bin" is not an absolute path'),
    ],
)
def test_find_in_path_refuses(plugin, paths, text):
    with pytest.raises(PluginNotFoundError) as caught:
        invoke.find_in_path(plugin, paths)
    assert str(caught.value) == text
    assert (caught.value.plugin, caught.value.paths) == (plugin, tuple(paths))


# ---- the environment


def test_env_overrides_what_is_inherited(monkeypatch):
    monkeypatch.setenv("CNI_COMMAND", "inherited")
    monkeypatch.setenv("CNI_ARGS", "INHERITED=1")
    monkeypatch.setenv("OTHER", "kept")
    before = dict(os.environ)
    pairs = [("KEY1", "VALUE1"), ("KEY2", "VALUE2")]
    env = invoke.plugin_env("ADD", "cid", "/ns", pairs, "eth7", "/some/path:/other")
    expected = {
        "CNI_COMMAND": "ADD",
        "CNI_CONTAINERID": "cid",
        "CNI_NETNS": "/ns",
        "CNI_ARGS": "KEY1=VALUE1;KEY2=VALUE2",
        "CNI_IFNAME": "eth7",
        "CNI_PATH": "/some/path:/other",
    }
    assert env == {**before, **expected}
    assert dict(os.environ) == before


@pytest.mark.parametrize("name", ["TRACEPARENT", "TRACESTATE", "BAGGAGE"])
def test_the_context_of_a_trace_reaches_plugins(monkeypatch, name):
    monkeypatch.delenv(name, raising=False)
    assert name not in invoke.plugin_env("ADD")
    monkeypatch.setenv(name, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    assert invoke.plugin_env("ADD")[name] == "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_env_has_all_six_even_if_empty():
    env = invoke.plugin_env("GC")
    names = ("CNI_CONTAINERID", "CNI_NETNS", "CNI_ARGS", "CNI_IFNAME", "CNI_PATH")
    assert [env[name] for name in names] == [""] * 5


# ---- success


def test_stdin_and_stdout(world):
    path = world.script("cat", "exec cat")
    data = b'{"some":"stdin-json"}' * 50000
    assert run(path, stdin=data) == data
    assert run(path, stdin=b"") == b""


def test_the_environment_is_exactly_the_given_one(world):
    path = world.script("env", "exec env")
    output = run(path, env={"PATH": "/usr/bin:/bin", "FOO": "b=a\nr"})
    assert b"FOO=b=a\nr\n" in output
    assert b"HOME=" not in output


def test_a_plugin_need_not_read_its_stdin(world):
    assert run(world.script("deaf", "echo '{}'"), stdin=b"x" * 1000000) == b"{}\n"


def test_stderr_of_success_goes_where_the_executor_says(world):
    path = world.script("chatty", "echo message >&2; echo out")
    stderr = io.BytesIO()
    output = run(path, executor=invoke.Executor(stderr))
    assert (output, stderr.getvalue(), output.stderr) == (b"out\n", b"message\n", "message\n")
    assert run(path).stderr == "message\n"


def test_process_group_and_descriptors(world):
    debug = world.debug()
    conf = json.dumps({"name": "n", "cniVersion": "1.1.0", "debugFile": str(debug.path)}).encode()
    inherited = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(inherited, True)
    try:
        run(world.bin / "noop", stdin=conf, env={**ENV, "CNI_COMMAND": "STATUS", "CNI_PATH": "/x"})
        output = run(world.script("fds", "ls /proc/self/fd"))
    finally:
        os.close(inherited)
    pid, group, session = debug.read()["Pids"]
    assert (group, session) == (pid, os.getsid(0))
    # stdin, stdout, stderr, and what ls opens.
    assert len(output.split()) == 4


def test_a_plugin_can_be_told_another_name():
    """A binary that is several plugins chooses by argv[0]; a shell that reads its program shows it as $0."""
    assert run("/bin/sh", stdin=b'echo "$0"') == b"/bin/sh\n"
    assert run("/bin/sh", stdin=b'echo "$0"', executor=invoke.Executor(argv0="/x/bridge")) == b"/x/bridge\n"


def test_threads_share_an_executor(world):
    path = world.script("echo", "exec cat")
    executor = invoke.Executor()
    outputs = {}

    def work(number):
        for turn in range(5):
            data = f"{number}-{turn}".encode() * 20000
            outputs[number, turn] = run(path, stdin=data, executor=executor) == data

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outputs) == 30
    assert all(outputs.values())


# ---- failure


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("exit 3", "netplugin failed with no error message: exit status 3"),
        ("kill -SEGV $$", "netplugin failed with no error message: signal: segmentation fault"),
        ("kill -KILL $$", "netplugin failed with no error message: signal: killed"),
        ("echo 'some stderr message' >&2; exit 1", 'netplugin failed: "some stderr message\\n": exit status 1'),
        (r"printf 'a\377\342\202\254' >&2; exit 1", 'netplugin failed: "a\\xff\u20ac": exit status 1'),
        ("""echo '{"code":999,"msg":"plugin error: banana"}'; exit 1""", "plugin error: banana"),
        ("""echo '{"cniVersion":"1.0.0","CODE":7,"msg":"banana","details":"split","x":1}'; exit 1""", "banana; split"),
        (
            """echo '{"ips":[]}'; exit 1""",
            'netplugin failed and its output "{\\"ips\\":[]}\\n" has no error message: exit status 1',
        ),
        ("echo null; exit 1", 'netplugin failed and its output "null\\n" has no error message: exit status 1'),
    ],
)
def test_failures(world, body, text):
    assert str(failure(world.script("bad", body))) == text


@pytest.mark.parametrize(
    "stdout",
    [
        "this is no json",
        '{"code":-1,"msg":"x"}',
        '{"code":"7","msg":"x"}',
        '{"code":1.0,"msg":"x"}',
        '{"code":18446744073709551616,"msg":"x"}',
        '{"code":7,"msg":["x"]}',
        "[1]",
    ],
)
def test_failures_without_an_error_object(world, stdout):
    error = failure(world.script("bad", f"echo '{stdout}'; exit 1"))
    quoted = stdout.replace('"', '\\"')
    assert str(error).startswith(f'netplugin failed but error parsing its diagnostic message "{quoted}\\n": ')
    assert error.code == 0


def test_error_attributes(world):
    error = failure(
        world.script("bad", """echo '{"code":11,"msg":"m","details":"d"}'; printf 'a\\377\\n' >&2; exit 1""")
    )
    assert (error.code, error.msg, error.details) == (11, "m", "d")
    assert (error.plugin, error.stderr) == ("bad", "a\ufffd\n")


def test_error_without_text_keeps_its_code(world):
    error = failure(world.script("bad", """echo '{"code":50,"details":"d"}'; exit 1"""))
    assert (error.code, error.details) == (50, "d")
    assert "has no error message" in error.msg


@pytest.mark.parametrize("output", [b"\xff\xfe\x00", b"[" * 100000, b'{"code":' + b"1" * 5000, b'{"msg":"\\ud800"}'])
def test_garbage_is_one_error(world, output):
    (world.path / "out").write_bytes(output)
    error = failure(world.script("bad", f"cat '{world.path}/out'; exit 1"))
    assert len(str(error)) < 10000
    str(error).encode("utf-8")


def test_stderr_is_bounded_to_its_end(world):
    body = "i=0; while [ $i -lt 4000 ]; do echo 'line of the log' >&2; i=$((i+1)); done; echo THE END >&2; exit 1"
    error = failure(world.script("bad", body))
    assert len(error.stderr) == process.STDERR_LIMIT
    assert error.stderr.endswith("\nTHE END\n")
    assert len(str(error)) < 2 * invoke.QUOTE_LIMIT


def test_stdout_is_bounded(world, monkeypatch):
    monkeypatch.setattr(process, "STDOUT_LIMIT", 100000)
    error = failure(world.script("bad", "echo why >&2; exec cat /dev/zero"), timeout=None)
    assert "signal: killed (it printed more than 100000 bytes)" in str(error)
    assert error.stderr == "why\n"


def test_what_cannot_be_run(world):
    missing = world.bin / "missing"
    error = failure(missing)
    assert str(error) == (f"netplugin failed with no error message: fork/exec {missing}: no such file or directory")
    assert error.plugin == "missing"
    (world.bin / "text").write_text("no program")
    assert str(failure(world.bin / "text")).endswith("text: permission denied")
    (world.bin / "text").chmod(0o755)
    assert str(failure(world.bin / "text")).endswith("text: exec format error")
    world.script("shebang", "")
    (world.bin / "shebang").write_text("#!/no/such/interpreter\n")
    assert str(failure(world.bin / "shebang")).endswith("shebang: no such file or directory")


@pytest.mark.parametrize("env", [{"A": "b\0c"}, {"A": "\ud800"}, {"A=B": "c"}, {"": "c"}])
def test_environment_that_cannot_be_passed(world, env):
    path = world.script("env", "env; exit 1")
    with contextlib.suppress(PluginError):
        run(path, env=env)


def test_nul_in_the_environment(world):
    error = failure(world.bin / "noop", env={"CNI_ARGS": "a\0b"})
    assert str(error).endswith("noop: invalid argument")


# ---- deadlines


def has_ended(pid):
    """Say whether a process has gone, or is a zombie that nobody has waited for."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # it went before the file was opened, or while it was read
        return True
    return state.rpartition(b")")[2].split()[0] == b"Z"


def wait_for_death(pid):
    for _turn in range(500):
        if has_ended(pid):
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def begin_when(monkeypatch):
    """Return a function after which the time of a program begins when a condition on its process ID is met."""
    waited = 0.0
    start = process.start_child

    def begin(condition):
        def started(*args):
            nonlocal waited
            begun = time.monotonic()
            child = start(*args)
            while not condition(child.pid):
                assert time.monotonic() - begun < 120
                time.sleep(0.005)
            waited += time.monotonic() - begun
            return child

        monkeypatch.setattr(process, "start_child", started)
        clock = SimpleNamespace(monotonic=lambda: time.monotonic() - waited, sleep=time.sleep)
        monkeypatch.setattr(process, "time", clock)

    return begin


def test_deadline_kills_the_group(world, begin_when):
    body = f"cd '{world.path}'; echo partial; echo diagnosis >&2; sleep 600 & echo $! > new; mv new pid; wait"
    begin_when(lambda _pid: (world.path / "pid").exists())
    error = failure(world.script("sleep", body), timeout=1)
    assert "signal: killed (it did not end within 1 s)" in str(error)
    assert error.stderr == "diagnosis\n"
    assert wait_for_death(int((world.path / "pid").read_text()))


def test_deadline_text_of_a_silent_plugin(world):
    error = failure(world.script("sleep", "exec sleep 600"), timeout=0.5)
    assert str(error) == ("netplugin failed with no error message: signal: killed (it did not end within 0.5 s)")


def test_deadline_of_a_plugin_that_closed_its_output(world):
    error = failure(world.script("sleep", "exec >&- 2>&-; exec sleep 600"), timeout=0.5)
    assert "it did not end within 0.5 s" in str(error)


def test_child_that_holds_the_output_is_killed(world, begin_when):
    begin_when(has_ended)
    body = f"sleep 600 & echo $! > '{world.path}/pid'; echo '{{}}'; exit 0"
    error = failure(world.script("leaver", body), timeout=0.5)
    assert "exit status 0 (but a process that it left behind held its output open for more than 0.5 s" in str(error)
    assert wait_for_death(int((world.path / "pid").read_text()))


def test_child_in_another_session_cannot_hold_the_caller(world, begin_when):
    # The pipe tells when it has left the group.
    body = "mkfifo left; setsid sh -c 'echo $$ > pid; : > left; exec sleep 600' & : < left; echo '{}'; exit 0"
    begin_when(has_ended)
    error = failure(world.script("leaver", f"cd '{world.path}'; {body}"), timeout=0.5)
    child = int((world.path / "pid").read_text())
    assert not has_ended(child)
    os.kill(child, signal.SIGKILL)
    assert "held its output open" in str(error)


def test_child_that_lets_go_of_the_output_stays(world):
    body = f"sleep 600 >/dev/null 2>&1 & echo $! > '{world.path}/pid'; echo '{{}}'"
    assert run(world.script("daemon", body)) == b"{}\n"
    pid = int((world.path / "pid").read_text())
    os.kill(pid, 0)
    os.kill(pid, signal.SIGKILL)


def test_without_deadline_the_output_is_awaited(world):
    path = world.script("leaver", "(sleep 0.3; echo late) & echo early; exit 0")
    assert run(path, timeout=None) == b"early\nlate\n"


def test_flood_on_stderr_does_not_outlive_the_deadline(world):
    error = failure(world.script("flood", "exec cat /dev/zero >&2"), timeout=0.5)
    assert "it did not end within 0.5 s" in str(error)


def test_answer_that_was_there_in_time_counts(world, begin_when):
    """On a host that is too busy to read it before the deadline."""
    begin_when(has_ended)
    assert run(world.script("quick", "echo '{}'"), timeout=0) == b"{}\n"


def test_interrupt_kills_the_plugin(world, monkeypatch):
    path = world.script("sleep", f"echo $$ > '{world.path}/pid'; echo x; exec sleep 600")

    def interrupt(_run, _fd):
        raise KeyboardInterrupt

    monkeypatch.setattr(process._Run, "_receive", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(path)
    assert wait_for_death(int((world.path / "pid").read_text()))


# ---- ETXTBSY


@pytest.fixture
def busy(world, monkeypatch):
    """A plugin that cannot be run as long as the file is open, the waits between the tries, and a call at each."""
    path = world.script("busy", "echo '{}'")
    waits = []

    def sleep(seconds):
        # Others are those for the end of the plugin, before Python 3.9.
        if seconds == process.BUSY_DELAY:
            waits.append(seconds)
            on_wait(len(waits))

    on_wait = Mock()
    with open(path, "r+b") as file:
        # Only the module's own clock: subprocess sleeps too.
        monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
        yield path, file, waits, on_wait


def test_busy_binary_is_tried_again(busy):
    path, file, waits, on_wait = busy
    on_wait.side_effect = lambda number: file.close() if number == 3 else None
    assert run(path) == b"{}\n"
    assert waits == [1.0, 1.0, 1.0]


def test_busy_binary_is_given_up(busy):
    path, _file, waits, _on_wait = busy
    assert str(failure(path)) == f"netplugin failed with no error message: fork/exec {path}: text file busy"
    assert waits == [1.0] * 5


def test_busy_binary_is_not_tried_beyond_the_deadline(busy):
    path, _file, waits, _on_wait = busy
    assert str(failure(path, timeout=0.5)).endswith("text file busy")
    assert waits == []


# ---- VERSION


def test_get_version_info(world):
    versions = invoke.get_version_info(str(world.bin / "noop"), invoke.Executor(), 60)
    assert versions == ["0.-42.0", "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]


def test_get_version_info_passes_dummies(world):
    body = f"cat > '{world.path}/stdin'; env > '{world.path}/env'; echo '{{\"cniVersion\":\"0.2.0\"}}'"
    assert invoke.get_version_info(world.script("old", body), invoke.Executor()) == ["0.1.0", "0.2.0"]
    assert (world.path / "stdin").read_bytes() == b'{"cniVersion":"1.1.0"}'
    env = dict(line.split("=", 1) for line in (world.path / "env").read_text().splitlines())
    assert {key: value for key, value in env.items() if key.startswith("CNI_")} == {
        "CNI_COMMAND": "VERSION",
        "CNI_CONTAINERID": "",
        "CNI_ARGS": "",
        "CNI_NETNS": "dummy",
        "CNI_IFNAME": "dummy",
        "CNI_PATH": "dummy",
    }


def test_get_version_info_of_a_plugin_without_version(world):
    path = world.script("old", """echo '{"code":4,"msg":"unknown CNI_COMMAND: VERSION"}'; exit 1""")
    assert invoke.get_version_info(path, invoke.Executor()) == ["0.1.0"]
    path = world.script("bad", """echo '{"code":4,"msg":"other"}'; exit 1""")
    with pytest.raises(PluginError, match=r"^other$"):
        invoke.get_version_info(path, invoke.Executor())


def test_get_version_info_of_garbage(world):
    path = world.script("bad", "echo trace >&2; echo nonsense")
    with pytest.raises(PluginError, match=r"^decoding version info: ") as caught:
        invoke.get_version_info(path, invoke.Executor())
    assert (caught.value.plugin, caught.value.stderr) == ("bad", "trace\n")
