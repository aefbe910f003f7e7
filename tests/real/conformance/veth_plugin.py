# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A small interface plugin that keeps every clause, unless FAULT breaks one. test_planted.py installs it."""

import hashlib
import json
import os
import re
import subprocess
import sys
import time

FAULT = ""
VERSIONS = ["0.4.0", "1.0.0", "1.1.0"]
KNOWN_ARGS = {"IgnoreUnknown", "IP"}
NEEDED = {
    "ADD": ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME"),
    "CHECK": ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME"),
    "DEL": ("CNI_CONTAINERID", "CNI_IFNAME"),
    "STATUS": (),
    "GC": (),
}
VERB, CONTAINER, NETNS, IFNAME, ARGS = (
    os.environ.get(f"CNI_{name}", "") for name in ("COMMAND", "CONTAINERID", "NETNS", "IFNAME", "ARGS")
)
CONF = {}


class PluginError(Exception):
    pass


def run(*words, inside=False):
    prefix = ["nsenter", f"--net={NETNS}"] if inside else []
    done = subprocess.run([*prefix, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PluginError(5, f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def here(*words, inside=False):
    try:
        return json.loads(run("ip", "-json", *words, inside=inside) or "[]")
    except PluginError:
        return []


def delegate(verb):
    kept = dict(CONF)
    if FAULT == "lost key":
        kept = {key: CONF[key] for key in ("cniVersion", "name", "type", "ipam", "prevResult") if key in CONF}
    folders = os.environ["CNI_PATH"].split(":")
    path = next(f"{one}/{CONF['ipam']['type']}" for one in folders if os.path.exists(f"{one}/{CONF['ipam']['type']}"))
    env = {**os.environ, "CNI_COMMAND": verb}
    done = subprocess.run([path], input=json.dumps(kept), env=env, stdout=subprocess.PIPE, text=True, check=False)
    answer = json.loads(done.stdout or "{}")
    if done.returncode:
        raise PluginError(answer["code"], answer["msg"])
    return answer


def add(host):
    if not os.path.exists(NETNS):
        raise PluginError(8, f"CNI_NETNS: no namespace {NETNS}")
    if here("link", "show", "dev", IFNAME, inside=True):
        raise PluginError(100, f"{IFNAME} exists")
    try:
        result = delegate("ADD")
        (address,) = (entry["address"] for entry in result["ips"])
        run("ip", "link", "add", host, "type", "veth", "peer", "name", f"p{host}")
        if FAULT == "leaked veth":
            run("ip", "link", "add", f"l{host}", "type", "veth", "peer", "name", f"m{host}")
        run("ip", "link", "set", f"p{host}", "netns", NETNS)
        run("ip", "link", "set", f"p{host}", "name", IFNAME, inside=True)
        run("ip", "address", "add", address, "dev", IFNAME, inside=True)
        run("ip", "link", "set", host, "up")
        run("ip", "link", "set", IFNAME, "up", inside=True)
        run("ip", "route", "add", "default", "via", result["ips"][0]["gateway"], inside=True)
    except PluginError:
        delete(host)
        raise
    macs = [here("link", "show", "dev", name, inside=there)[0]["address"] for name, there in ((host, 0), (IFNAME, 1))]
    result["interfaces"] = [{"name": host, "mac": macs[0]}, {"name": IFNAME, "mac": macs[1], "sandbox": NETNS}]
    result["ips"][0]["interface"] = 1
    if FAULT == "wrong version":
        result["cniVersion"] = next(version for version in VERSIONS if version != CONF["cniVersion"])
    if FAULT == "stray print":
        print("attached", IFNAME)
    print(json.dumps(result))


def delete(host):
    there = here("link", "show", "dev", host)
    if FAULT == "second DEL fails" and not there:
        raise PluginError(100, f"no interface {host}")
    if FAULT == "hang" and VERB == "DEL":
        time.sleep(600)
    if there:
        run("ip", "link", "delete", host)
    if FAULT != "leaked lease":
        delegate("DEL")


def check():
    if FAULT == "CHECK never fails":
        return
    wanted = CONF["prevResult"]["ips"][0]["address"]
    found = here("address", "show", "dev", IFNAME, inside=True)
    if wanted not in [f"{one.get('local')}/{one.get('prefixlen')}" for link in found for one in link["addr_info"]]:
        raise PluginError(100, f"{IFNAME} has no {wanted}")
    if not here("route", "show", "default", "dev", IFNAME, inside=True):
        raise PluginError(100, "no default route")
    delegate("CHECK")


def checked():
    """Read and check everything that the specification says of variables and of the configuration."""
    if VERB not in NEEDED:
        raise PluginError(4, f"unknown CNI_COMMAND: {VERB}")
    missing = [name for name in NEEDED[VERB] if not os.environ.get(name)]
    if missing:
        raise PluginError(4, f"missing: {', '.join(missing)}")
    if CONTAINER and not re.fullmatch(r"[A-Za-z0-9][\w.-]*", CONTAINER):
        raise PluginError(4, "invalid CNI_CONTAINERID")
    if IFNAME and not re.fullmatch(r"[^/:\s]{1,15}", IFNAME):
        raise PluginError(4, "invalid CNI_IFNAME")
    try:
        CONF.update(json.load(sys.stdin))
    except ValueError as error:
        raise PluginError(6, f"stdin: {error}") from error
    if CONF["cniVersion"] not in VERSIONS:
        raise PluginError(1, f"unsupported cniVersion {CONF['cniVersion']}")
    args = dict(pair.split("=") for pair in ARGS.split(";") if pair)
    ignored = args.get("IgnoreUnknown") == "1" and FAULT != "IgnoreUnknown is ignored"
    if not ignored and set(args) - KNOWN_ARGS:
        raise PluginError(7, f"unknown CNI_ARGS: {ARGS}")


def main():
    if VERB == "VERSION":
        print(json.dumps({"cniVersion": json.load(sys.stdin)["cniVersion"], "supportedVersions": VERSIONS}))
        return
    checked()
    host = "v" + hashlib.sha256(f"{CONTAINER}/{IFNAME}".encode()).hexdigest()[:10]
    if VERB == "ADD":
        add(host)
    elif VERB == "DEL":
        delete(host)
    elif VERB == "CHECK":
        check()
    else:
        delegate(VERB)


if __name__ == "__main__":
    try:
        main()
    except PluginError as error:
        answer = {"cniVersion": CONF.get("cniVersion", VERSIONS[-1]), "code": error.args[0], "msg": error.args[1]}
        if FAULT == "no error code":
            del answer["code"]
        print(json.dumps(answer))
        sys.exit(1)
