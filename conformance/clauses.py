# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The clauses that a plugin is judged by: sections of the CNI specification 1.1.0, and what its conventions add.

`must` and `should` are those of the specification. Where Go's own pkg/skel or its result types break a `must`, so that
every plugin written with them does, the clause is a `should`, and its text says so.
"""

from __future__ import annotations

import typing as t

MUST, SHOULD = "must", "should"
EVERY_CALL = "every call"


class Clause(t.NamedTuple):
    """A clause: its name on the command line, its level, its check, the section of the specification, what it demands.

    The check is the name of a function `check_`, or EVERY_CALL.
    """

    name: str
    level: str
    check: str
    section: str
    text: str


_TABLE = """
version.answer | must | every call | 2 VERSION, 5 Version | VERSION needs no variable but CNI_COMMAND, and prints an \
object with cniVersion and the list supportedVersions
version.echo | should | every call | 5 Version | the cniVersion of that object is the one on stdin (Go's skel prints \
its newest instead)
command.unknown | must | variables | 2 Parameters | an unknown CNI_COMMAND is refused
variables.missing | must | variables | 2 CNI operations | an operation is refused if a variable that it requires is \
missing
variables.named | must | variables | 5 Error, code 4 | that error has the code 4, and its text names the variable
variables.invalid | should | variables | 2 Parameters | an invalid CNI_CONTAINERID or CNI_IFNAME is refused
args.ignore_unknown | must | args | Conventions, CNI_ARGS | unknown keys in CNI_ARGS are ignored if IgnoreUnknown=1 \
is there
stdin.empty | must | stdin | 2 Parameters | an operation without a configuration is refused
stdin.garbage | must | stdin | 5 Error, code 6 | a configuration that is not JSON is refused
config.version | must | stdin | 1 Version considerations | a configuration of a cniVersion that the plugin does not \
support is refused
output.only | must | every call | 2 Parameters, 5 | stdout holds nothing beside the result or the error
error.object | must | every call | 5 Error | an operation that fails prints an object with a numeric code and a msg, \
and exits with another status than 0
error.version | should | every call | 5 Error | an error object has the cniVersion (Go's skel leaves it out)
error.code | should | every call | 5 Error | errors that the specification numbers have their code
add.success | must | lifecycle | 2 ADD | ADD succeeds with a correct configuration
add.result | must | lifecycle | 5 Add success | ADD prints a result in the shape of the configuration's cniVersion
add.version | must | lifecycle | 5 Add success | the cniVersion of the result is the configuration's
add.interface | must | lifecycle | 2 ADD, 5 Add success | ADD makes CNI_IFNAME in the namespace and lists it with \
CNI_NETNS as its sandbox
add.interfaces | must | lifecycle | 5 Add success | the interfaces of the result exist where it says, with its MAC \
and MTU
add.addresses | must | lifecycle | 5 Add success | the addresses of the result are on the interfaces that it names
add.routes | should | lifecycle | 5 Add success | the routes of the result exist in the namespace
add.exists | must | lifecycle | 2 ADD | ADD fails if an interface of that name exists, and leaves it as it is
add.netns | must | no_namespace | 2 ADD | ADD fails if CNI_NETNS leads to no namespace, and a DEL leaves nothing of \
it
add.prev_result | must | lifecycle | 5 Add success | a chained plugin prints what it got in prevResult, with its own \
changes
add.unknown_keys | should | unknown_keys | 5 Add success | keys of prevResult that it does not know are kept (Go's \
result types drop them)
add.abbreviated | must | lifecycle | 5 Delegated plugins | the result of an IPAM plugin has no interfaces, and its \
addresses name none
del.success | must | lifecycle | 2 DEL | DEL after ADD succeeds
del.undone | must | lifecycle | 2 DEL | after DEL the namespace is as it was before ADD
del.host | must | lifecycle | 2 DEL | after DEL nothing is left on the host, except what attachments share
del.twice | must | lifecycle | 2 DEL | a second DEL succeeds and changes nothing
del.interface_gone | must | deletes | 2 DEL | DEL succeeds if the interface is missing
del.netns_gone | should | deletes | 2 DEL | DEL succeeds if the namespace is missing
del.netns_empty | should | deletes | 2 DEL | DEL succeeds without CNI_NETNS
del.no_prev_result | should | deletes | 2 DEL | DEL succeeds without prevResult, as after an ADD that failed
del.remains | should | deletes | 2 DEL | DEL leaves nothing on the host even if the interface, the namespace or \
prevResult is missing
check.after_add | must | lifecycle | 2 CHECK | CHECK succeeds right after ADD
check.damage | should | damage | 2 CHECK | CHECK fails if something that ADD made is gone
status.ready | must | status | 2 STATUS | STATUS succeeds if ADD does
gc.success | must | gc | 2 GC | GC succeeds
gc.keeps | must | gc | 2 GC | GC changes nothing of an attachment in cni.dev/valid-attachments
gc.collects | should | gc | 2 GC | GC removes what belongs to no valid attachment (no reference plugin does)
delegate.verbs | must | delegation | 4 Delegation | ADD, CHECK and DEL call the IPAM plugin with the same \
CNI_COMMAND
delegate.environment | should | delegation | 4 Delegation | the IPAM plugin gets the same variables
delegate.configuration | should | delegation | 4 Delegation | the IPAM plugin gets the same configuration, unknown \
keys included
delegate.failure | should | delegation | 4 Delegation | if the IPAM plugin fails at ADD, it is called with DEL \
before ADD fails
run.deadline | must | every call | libcni | every call ends within the deadline
run.processes | should | every call | libcni | no process is left when a call ends
run.parallel | must | parallel | 3 Lifecycle | calls for different containers run in parallel, get different \
addresses and leave nothing
"""

CLAUSES: t.Dict[str, Clause] = {}
for _line in filter(None, _TABLE.splitlines()):
    _clause = Clause(*(part.strip() for part in _line.split(" | ")))
    CLAUSES[_clause.name] = _clause
