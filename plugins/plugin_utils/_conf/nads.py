# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""NetworkAttachmentDefinitions: manifests checked with everything in them, and made from networks.

A manifest contains a network as JSON in a string. Its pointer continues in that string: /spec/config/plugins/0/mtu.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Iterator, Optional, Sequence

from ...module_utils._host.networks.request import NETWORK_ARGUMENTS
from ...module_utils._host.problems import ERROR, INFO, WARNING, Finding, errors_of
from ...module_utils.libcni.multi.definitions import API_VERSION, KIND
from ...module_utils.libcni.multi.delegates import load_delegate
from ...module_utils.libcni.multi.errors import NetworksError
from .networks import SOURCES, CheckedNetworks, no_files
from .positions import UNKNOWN, Fault, Pointer, Position, text_of
from .spelling import meant, unsupported
from .syntax import name_findings, shown
from .templates import HIDDEN, Masked, is_certain, is_half, masked
from .validate import TEMPLATE, Checked, TemplateSource, TextSource, once
from .yaml_text import NotYaml, YamlDocument, parts, values

_KEYS = ("apiVersion", "kind", "metadata", "spec", "status")
_OF_CNI = ("cniVersion", "ipam", "delegates")
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LONGEST_LABEL, _LONGEST_NAME = 63, 253
_LABEL_RULE = "lower-case letters, digits and '-', neither first nor last '-', and at most 63 characters"
RESOURCE_NAME = "k8s.v1.cni.cncf.io/resourceName"
_RESOURCE = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"

# What is about other files of a host has no meaning in a manifest.
_ENTRY_KEYS = set(NETWORK_ARGUMENTS) - {"drop_ins", "replace"}
_CONFIG = ("spec", "config")
_OF_OVN = re.compile(r'"netAttachDefName"\s*:\s*"(?P<namespace>[^"/\\]*)/(?P<name>[^"\\]*)"')
_OBJECT = re.compile(r"^kind:", re.MULTILINE)

# The manifests of which an operator makes definitions, and to which only the IPAM plugin is told in JSON.
_OF_OPERATORS = ("SriovNetwork", "SriovIBNetwork", "OVSNetwork", "HostDeviceNetwork", "MacvlanNetwork", "IPoIBNetwork")
_AROUND_IPAM = '{"cniVersion": "1.0.0", "name": "ipam", "type": "sriov", "capabilities": {"ips": true}, "ipam":\n'
OF_INTEREST = re.compile(
    r"networkattachmentdefinition|\bk8s\.cni\.cncf\.io|binaryData|cniVersion|rawCNIConfig|"
    rf"(cni[\w.-]*|conflist)['\"]?:\s*[|>'\"]|\b(ipam|delegates)\\?\"\s*:|kind: ({'|'.join(_OF_OPERATORS)})",
    re.IGNORECASE,
)


class _Config(TextSource):
    """The network in a manifest. One without a name, or with an empty one, has ``network``, as Multus calls it."""

    network: Optional[str] = None

    def document(self) -> Any:
        document = super().document()
        if isinstance(document, dict) and document.get("name", "") == "":
            document.pop("name", None)
            if self.network is not None:
                # What is wrong with the manifest's name is said at its place.
                document["name"] = "network" if list(name_findings(self.network)) else self.network
        return document


class _Template(_Config, TemplateSource):
    """The same, which may be a template."""


def is_definition(value: dict[str, Any], is_document: bool) -> bool:
    """Tell whether an object is a NetworkAttachmentDefinition: others name its kind, or have its schema."""
    needed = {"apiVersion", "metadata", "spec"} if is_document else {"metadata"}
    return value.get("kind") == KIND and bool(needed.intersection(value))


def _misspelled(value: dict[str, Any]) -> Optional[str]:
    """Return the key that says the kind NetworkAttachmentDefinition in the wrong way."""
    if value.get("kind") == KIND or not {key.lower() for key in map(str, value)} & {"metadata", "spec"}:
        return None
    keys = ["kind"] if "kind" in value else [key for key in map(str, value) if key.lower() in ("kind", "type")]
    return next((key for key in keys if isinstance(value[key], str) and meant(value[key], (KIND,))), None)


def is_network(value: Any) -> bool:
    """Tell whether a JSON value is the configuration of a network, and not another one with a version of CNI."""
    return isinstance(value, dict) and ("plugins" in value or "type" in value) and any(key in value for key in _OF_CNI)


def is_network_text(text: str, key: str) -> bool:
    """Tell whether the string under *key* is the configuration of a network."""
    if key == "rawCNIConfig" or key.endswith(".conflist"):
        return bool(text.strip())
    keys = set(re.findall(r'"(\w+)"\s*:', text)) if text.lstrip().startswith("{") else set()
    return bool(keys & {"type", "plugins"}) and ("cni" in key.lower() or bool(keys.intersection(_OF_CNI)))


class CheckedNads:
    """``manifests`` in the order of the input, usable only without errors in ``problems``.

    *given*: manifests as YAML or JSON text, as a mapping, or as a list of mappings. An element of the list can also be
    an entry of cni_networks; its manifest is in *namespace*. *label* names the text in problems. *mixed*: what has
    another kind is passed over, because the text is a file of any objects.
    """

    def __init__(
        self, given: Any, levels: Sequence[str], namespace: str = "", label: str = "", mixed: bool = False
    ) -> None:
        self.manifests: list[dict[str, Any]] = []
        self.problems: list[Finding] = []
        self._levels = levels
        self._namespace = namespace
        self._label = label
        self._mixed = mixed
        self._seen: set[tuple[str, str]] = set()
        if namespace and not _is_label(namespace):
            text = f"the namespace is {shown(namespace)}; a namespace has {_LABEL_RULE}"
            self._error("nad_name", text, "namespace")
        if isinstance(given, str):
            self._text(str(given))
            return
        for index, element in enumerate(given if isinstance(given, list) else [given]):
            where = f"element {index}" if isinstance(given, list) else "the input"
            if isinstance(element, dict) and not {"kind", "apiVersion", "spec", "metadata"}.intersection(element):
                self._entry(where, element)
            else:
                self._documents(element, where, None)

    # ---- manifests

    def _text(self, text: str) -> None:
        """Check the documents of a YAML text."""
        text, is_open = masked(text) if self._mixed else Masked(text)
        for index, part in enumerate(parts(text)):
            if self._mixed and not OF_INTEREST.search(part.text):
                continue
            try:
                document = YamlDocument(part, is_open)
            except NotYaml as error:
                if self._mixed and (is_half(part.text) or is_open.intersection(part.numbers)):
                    text = "this is a template; it was not checked, because it is not YAML before it is rendered"
                    self.problems.append(Finding(INFO, "template", text, "", self._label, "", *error.position))
                elif not self._mixed or KIND in part.text or _OBJECT.search(part.text):
                    self._error("yaml_invalid", f"this is not YAML: {error}", self._label, "", error.position)
                continue
            if document.value not in (None, "") and self._mixed:
                self._repository(document.value, document)
            elif document.value not in (None, ""):
                self._documents(document.value, f"document {index}", document)

    def _documents(self, document: Any, where: str, place: Optional[YamlDocument]) -> None:
        items = document.get("items") if isinstance(document, dict) and document.get("kind") == "List" else None
        if not isinstance(items, list):
            self._manifest(document, where, (), place)
            return
        for index, item in enumerate(items):
            self._manifest(item, f"{where}, item {index}", ("items", index), place)

    def _repository(self, document: Any, place: YamlDocument) -> None:
        """Check every manifest and every network in a document of any kind."""
        names: dict[tuple[Any, ...], str] = {}
        kind, judged = "", set()
        for pointer, value in values(document):
            kind = str(value["kind"]) if isinstance(value, dict) and "kind" in value else kind
            named = value if isinstance(value, dict) and "rawCNIConfig" in value else None
            named = value.get("metadata") if isinstance(value, dict) and "kind" in value else named
            if isinstance(named, dict) and isinstance(named.get("name"), str):
                # An operator makes a manifest of this name, or one is meant.
                keys = value if value.get("kind") == KIND else ("spec",)
                names.update(((*pointer, *place), named["name"]) for place in [(), *((key,) for key in keys)])
            elif isinstance(value, dict) and "op" in value and value.get("path") == "/spec/config":
                # The object that the patch changes has one.
                names[pointer] = "network"
            wrong = _misspelled(value) if isinstance(value, dict) and not pointer else None
            if wrong is not None:
                text = f"{wrong} is {shown(value[wrong])}; write kind: {KIND}"
                self._error("nad_kind", text, self._label, text_of((wrong,)), place.position((wrong,)))
                value = {**value, "kind": KIND}
            if isinstance(value, dict) and is_definition(value, not pointer):
                judged.add((*pointer, *_CONFIG))
                self._manifest(value, "", pointer, place)
            elif isinstance(value, str) and pointer[-2:] == ("spec", "ipam") and kind in _OF_OPERATORS:
                self._ipam(value, pointer, place)
            elif isinstance(value, str) and pointer and pointer not in judged:
                if pointer[-2:-1] == ("binaryData",) and is_network_text(_decoded(value), str(pointer[-1])):
                    text = "binaryData has a network, which was not checked; write it in data, as it is"
                    at = text_of(pointer), *place.position(pointer)
                    self.problems.append(Finding(INFO, "not_checked", text, "", self._label, *at))
                elif is_network_text(value, str(pointer[-1])):
                    self._config(value, names.get(pointer[:-1]), self._label, pointer, place)

    def _manifest(self, manifest: Any, where: str, at: tuple[Any, ...], place: Optional[YamlDocument]) -> None:
        metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
        if self._mixed and isinstance(metadata, dict) and isinstance(metadata.get("generateName"), str):
            metadata = {"name": f"{metadata['generateName']}{len(self._seen)}", **metadata}
            manifest = {**manifest, "metadata": metadata}
        name = metadata.get("name") if isinstance(metadata, dict) else None
        label = self._label or (f"NetworkAttachmentDefinition {name}" if isinstance(name, str) and name else where)
        for fault in _manifest_findings(manifest):
            if fault.code == "nad_file" and place and place.is_open(at + fault.pointer):
                fault = fault._replace(code="template", message=TEMPLATE)
            if place is None or fault.code == "template" or is_certain(manifest, fault.pointer, place.is_open(at)):
                position = place.position(at + fault.pointer) if place else UNKNOWN
                text = text_of(at + fault.pointer)
                self.problems.append(Finding(fault.level, fault.code, fault.message, "", label, text, *position))
        spec = manifest.get("spec") if isinstance(manifest, dict) else None
        config = spec.get("config") if isinstance(spec, dict) else None
        if isinstance(config, str) and config:
            self._config(str(config), name if isinstance(name, str) else "network", label, (*at, *_CONFIG), place)
        if isinstance(metadata, dict) and isinstance(name, str):
            at_name = (*at, "metadata", "name")
            position = place.position(at_name) if place else UNKNOWN
            if place is None or not place.is_open(at):
                self._unique(str(metadata.get("namespace") or ""), name, label, text_of(at_name), position)
            self.manifests.append(manifest)

    def _config(self, text: str, name: Optional[str], label: str, at: Pointer, place: Optional[YamlDocument]) -> None:
        """Check the network in the string at the pointer *at*; *name* is what Multus calls one without a name."""
        source = _Template(text, place.is_open(at)) if self._mixed and place else _Config(text)
        source.network = name
        checked = Checked(source, label, None, self._levels, "pod" if name is not None else "")
        problems = checked.problems
        if name is not None and not source.marked and not errors_of(problems):
            problems = once([*problems, *_refused(checked.text, label)])
        for finding in problems:
            if place is None:
                # Line and column are those in the string.
                finding = finding._replace(file=f"{label}, spec.config")
            else:
                line, column = place.inside(at, finding.line, finding.column)
                finding = finding._replace(line=line, column=column)
            self.problems.append(finding._replace(pointer=text_of(at) + finding.pointer))

    def _ipam(self, text: str, at: tuple[Any, ...], place: YamlDocument) -> None:
        """Check what an operator puts into a network as ipam."""
        source = _Template(f"{_AROUND_IPAM}{text}\n}}", place.is_open(at))
        for finding in Checked(source, self._label, None, self._levels).problems:
            if finding.pointer.startswith("/ipam") or not finding.pointer:
                line, column = place.inside(at, finding.line - 1 if finding.line else None, finding.column)
                pointer = text_of(at) + finding.pointer[len("/ipam") :]
                self.problems.append(finding._replace(line=line, column=column, pointer=pointer))

    def _unique(self, namespace: str, name: str, label: str, pointer: str, place: Position = UNKNOWN) -> None:
        if HIDDEN in namespace + name:
            return
        if (namespace, name) in self._seen:
            text = f"the name {name!r} occurs twice in {namespace or 'the namespace'}; keep one of them"
            # Of the manifests of a file, the last one counts.
            level = WARNING if self._mixed else ERROR
            self.problems.append(Finding(level, "nad_twice", text, "", label, pointer, *place))
        self._seen.add((namespace, name))

    # ---- entries of cni_networks

    def _entry(self, where: str, entry: dict[str, Any]) -> None:
        for text in unsupported((key for key, value in entry.items() if value is not None), _ENTRY_KEYS):
            self._error("bad_argument", text, where)
        if entry.get("state") not in (None, "present"):
            return
        source = next((key for key in SOURCES if entry.get(key) is not None), None)
        if source is None:
            text = (
                "this is neither a manifest nor a network; write a manifest with kind, or an entry of cni_networks "
                "with exactly one of conflist (a mapping) and content (JSON text)"
            )
            self._error("bad_argument", text, where)
            return
        network = {key: entry.get(key) for key in ("name", *SOURCES)}
        checked = CheckedNetworks([network], list(self._levels), no_files, place=where)
        self.problems += checked.problems
        for rendered in checked.rendered:
            name, content = rendered["name"], rendered["content"]
            self.problems += _refused(content, f"{where}.{source}")
            for text in _name_texts(name):
                self._error("nad_name", text, where)
            self._unique(self._namespace, name, where, "")
            metadata = {"name": name, **({"namespace": self._namespace} if self._namespace else {})}
            manifest = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": {"config": content}}
            self.manifests.append(manifest)

    def _error(self, code: str, message: str, label: str, pointer: str = "", position: Position = UNKNOWN) -> None:
        self.problems.append(Finding(ERROR, code, message, "", label, pointer, *position))


def _is_label(text: Any) -> bool:
    return isinstance(text, str) and len(text) <= _LONGEST_LABEL and re.fullmatch(_LABEL, text) is not None


def _name_texts(name: str) -> Iterator[str]:
    labels = name.split(".")
    if len(name) > _LONGEST_NAME or any(re.fullmatch(_LABEL, label) is None for label in labels):
        yield (
            f"{name!r} cannot name an object of Kubernetes: {_LABEL_RULE.rpartition(', and')[0]}, in parts with dots "
            "between them; choose another name"
        )


def _manifest_findings(manifest: Any) -> Iterator[Fault]:
    """Yield what is wrong with a manifest outside of its network."""
    if not isinstance(manifest, dict):
        text = f"this is {shown(manifest)}; a manifest is a mapping with apiVersion and kind"
        yield Fault(ERROR, "nad_kind", text, ())
        return
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if manifest.get(key) != wanted:
            yield Fault(ERROR, "nad_kind", f"{key} is {shown(manifest.get(key))}; write {wanted}", (key,))
    metadata, spec = manifest.get("metadata"), manifest.get("spec")
    wrong = _wrong_places(manifest)
    for place, right in wrong.items():
        remedy = f"write {right}" if right else "write it in metadata or spec, or remove it"
        where = f"in its {place[0]}" if place[1:] else "at its top"
        text = f"a manifest has no key {place[-1]!r} {where}, and the API drops it; {remedy}"
        # What is meant is lost.
        yield Fault(ERROR if right else WARNING, "nad_spec", text, place)
    yield from _metadata_findings(metadata) if metadata is not None or "metadata" not in wrong.values() else ()
    if spec is not None and not isinstance(spec, dict):
        yield Fault(ERROR, "nad_spec", f"spec is {shown(spec)}; it must be a mapping with the key config", ("spec",))
        return
    for key in spec or {}:
        if key != "config" and ("spec", key) not in wrong:
            yield Fault(WARNING, "nad_spec", f"Multus does not read {key!r}; it reads config only", ("spec", key))
    config = (spec or {}).get("config")
    if config is not None and not isinstance(config, str):
        text = f"config is {shown(config)}; it must be JSON in a string: write config: | and the JSON below it"
        yield Fault(ERROR, "nad_spec", text, _CONFIG)
    elif config and isinstance(metadata, dict):
        yield from _ovn_findings(metadata, str(config))
    elif not config and "$patch" not in manifest and not any(wrong.values()):
        text = "there is no config; Multus runs the file of its confDir whose network has this name"
        yield Fault(INFO, "nad_file", text, ("spec",))


def _wrong_places(manifest: dict[str, Any]) -> dict[tuple[Any, ...], str]:
    """Return the pointer of each key that a manifest does not have, and what to write for it, "" if that is unknown."""
    # A patch has keys such as $patch; those of the kind are reported already.
    told = ("kind", "type", "apiversion")
    keys = [key for key in manifest if key not in _KEYS and str(key).lower() not in told and str(key)[:1] != "$"]
    wrong: dict[Any, str] = {(key,): "spec.config" if key == "config" else meant(str(key), _KEYS) for key in keys}
    for name in ("metadata", "spec"):
        inner = manifest.get(name)
        for key in inner if isinstance(inner, dict) else ():
            if (key == "config") == (name == "metadata") and meant(str(key), ("config",)):
                wrong[(name, key)] = "spec.config"
    return wrong


def _metadata_findings(metadata: Any) -> Iterator[Fault]:
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        yield Fault(ERROR, "nad_name", "the object has no name; write metadata.name in quotes", ("metadata",))
        return
    name = metadata["name"]
    at = ("metadata", "name")
    for text in _name_texts(name):
        yield Fault(ERROR, "nad_name", text, at)
    if "." in name:
        text = f"pods can request {name!r} in the JSON form of the annotation only, because of the dot in it"
        yield Fault(WARNING, "nad_name", text, at)
    namespace = metadata.get("namespace")
    if namespace is not None and not _is_label(namespace):
        text = f"the namespace is {shown(namespace)}; a namespace has {_LABEL_RULE}"
        yield Fault(ERROR, "nad_name", text, ("metadata", "namespace"))
    for key in ("annotations", "labels"):
        if isinstance(metadata.get(key), dict) and "namespace" in metadata[key]:
            text = f"namespace is among the {key}, where it has no effect; write it directly in metadata"
            yield Fault(WARNING, "nad_name", text, ("metadata", key, "namespace"))
    annotations = metadata.get("annotations")
    resource = annotations.get(RESOURCE_NAME) if isinstance(annotations, dict) else None
    if resource is not None and (not isinstance(resource, str) or re.fullmatch(_RESOURCE, resource) is None):
        text = f"{RESOURCE_NAME} is {shown(resource)}; write a resource such as example.com/nic of a device plugin"
        # Multus looks a string up: a driver for DRA may name a device so, and without one the pod gets no device.
        level = INFO if isinstance(resource, str) else ERROR
        yield Fault(level, "nad_spec", text, ("metadata", "annotations", RESOURCE_NAME))


def _ovn_findings(metadata: dict[str, Any], config: str) -> Iterator[Fault]:
    """Yield what OVN-Kubernetes refuses: the network of another definition."""
    named = _OF_OVN.search(config) if re.search(r'"topology"\s*:\s*"\w', config) else None
    name, namespace = str(metadata.get("name")), str(metadata.get("namespace") or "NAMESPACE")
    if named is None or HIDDEN in name + namespace + named[0]:
        return
    if named["name"] != name or namespace not in (named["namespace"], "NAMESPACE"):
        text = f"OVN-Kubernetes refuses a netAttachDefName other than this object's; write {namespace}/{name}"
        yield Fault(WARNING, "nad_name", text, _CONFIG)


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode("utf-8")
    except ValueError:
        return ""


def _refused(text: str, label: str) -> list[Finding]:
    """Return what Multus refuses of a network although libcni takes it."""
    try:
        load_delegate(text.encode("utf-8"))
    except NetworksError as error:
        return [Finding(ERROR, "refused_by_multus", f"Multus cannot load this: {error.msg}", "", label, error.pointer)]
    return []
