# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""NetworkAttachmentDefinitions: manifests checked with everything in them, and made from networks.

A manifest contains a network as JSON in a string. Its pointer continues in that string: /spec/config/plugins/0/mtu.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Iterator, Optional, Sequence, Union

from ...module_utils._host.networks.request import NETWORK_ARGUMENTS
from ...module_utils._host.problems import ERROR, INFO, WARNING, Finding, errors_of
from ...module_utils.libcni.errors import JSONError
from ...module_utils.libcni.multi.definitions import API_VERSION, KIND
from ...module_utils.libcni.multi.delegates import load_delegate
from ...module_utils.libcni.multi.errors import NetworksError
from ..remedies import no_options
from .networks import SOURCES, CheckedNetworks, no_files
from .positions import UNKNOWN, Position, text_of
from .source import Fault, TextSource, Unreadable
from .syntax import name_findings, shown
from .validate import Checked

# Only manifests in YAML need it; Ansible has it, and the linter runs without Ansible.
YAML_MISSING: Optional[ImportError] = None
try:
    import yaml
except ImportError as _error:
    YAML_MISSING = _error

_Loader: Any = None if YAML_MISSING else getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LONGEST_LABEL, _LONGEST_NAME = 63, 253
_LABEL_RULE = "lower-case letters, digits and '-', neither first nor last '-', and at most 63 characters"
RESOURCE_NAME = "k8s.v1.cni.cncf.io/resourceName"
_RESOURCE = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"

# What is about other files of a host has no meaning in a manifest.
_ENTRY_KEYS = set(NETWORK_ARGUMENTS) - {"drop_ins", "replace"}
_CONFIG = ("spec", "config")

_Find = Callable[[Sequence[Any]], Position]


class _Config(TextSource):
    """The network in a manifest. Multus gives one with an empty name the manifest's name, like one without."""

    def document(self) -> Any:
        document = super().document()
        if isinstance(document, dict) and document.get("name") == "":
            del document["name"]
        return document


class CheckedNads:
    """``manifests`` in the order of the input, usable only without errors in ``problems``.

    *given*: manifests as YAML or JSON text, as a mapping, or as a list of mappings. An element of the list can also be
    an entry of cni_networks; its manifest is in *namespace*. *label* names the text in problems. *mixed*: what has
    another kind is passed over, because the text is a file of any objects.
    """

    def __init__(
        self,
        given: Any,
        levels: Sequence[str],
        namespace: str = "",
        label: str = "",
        mixed: bool = False,
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
                self._documents(element, where, lambda _pointer: UNKNOWN, None)

    # ---- manifests

    def _text(self, text: str) -> None:
        """Check the documents of a YAML text; JSON is YAML, except for tabs between its values."""
        loader = _Loader(text.replace("\t", " ") if text.lstrip().startswith(("{", "[")) else text)
        lines = text.split("\n")
        try:
            index = 0
            while loader.check_node():
                node = loader.get_node()
                where = f"document {index}"
                index += 1
                if node is None or (isinstance(node, yaml.ScalarNode) and node.value == ""):
                    continue
                self._documents(loader.construct_document(node), where, _finder(node), _TextPlace(lines, node))
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line, column = (mark.line + 1, mark.column + 1) if mark else UNKNOWN
            message = f"this is not YAML: {getattr(error, 'problem', None) or error}"
            self._error("yaml_invalid", message, self._label, "", (line, column))
        finally:
            loader.dispose()

    def _documents(self, document: Any, where: str, find: _Find, place: Optional[_TextPlace]) -> None:
        items = document.get("items") if isinstance(document, dict) and document.get("kind") == "List" else None
        if not isinstance(items, list):
            self._manifest(document, where, (), find, place)
            return
        for index, item in enumerate(items):
            self._manifest(item, f"{where}, item {index}", ("items", index), find, place)

    def _manifest(
        self, manifest: Any, where: str, at: tuple[Any, ...], find: _Find, place: Optional[_TextPlace]
    ) -> None:
        if self._mixed and not (isinstance(manifest, dict) and manifest.get("kind") == KIND):
            return
        metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        label = self._label or (f"NetworkAttachmentDefinition {name}" if isinstance(name, str) and name else where)
        for fault in _manifest_findings(manifest):
            at_fault = (label, text_of(at + fault.pointer), *find(at + fault.pointer))
            self.problems.append(Finding(fault.level, fault.code, fault.message, "", *at_fault))
        if not isinstance(manifest, dict) or not isinstance(metadata, dict) or not isinstance(name, str):
            return
        self._unique(str(metadata.get("namespace") or ""), name, label, text_of((*at, "metadata", "name")))
        config = manifest["spec"].get("config") if isinstance(manifest.get("spec"), dict) else None
        if isinstance(config, str) and config:
            self._config(str(config), name, label, at, place)
        self.manifests.append(manifest)

    def _config(self, text: str, name: str, label: str, at: tuple[Any, ...], place: Optional[_TextPlace]) -> None:
        source = _Config(text)
        checked = Checked(source, label, _given_name(source, name), self._levels)
        problems = checked.problems
        if not errors_of(problems):
            problems += _refused(checked.text, label)
        for finding in problems:
            position = place.inside((*at, *_CONFIG), finding.line, finding.column) if place else None
            if position is None:
                # Line and column are those in the string.
                finding = finding._replace(file=f"{label}, spec.config")
            else:
                finding = finding._replace(line=position[0], column=position[1])
            self.problems.append(finding._replace(pointer=text_of((*at, *_CONFIG)) + finding.pointer))

    def _unique(self, namespace: str, name: str, label: str, pointer: str) -> None:
        if (namespace, name) in self._seen:
            text = f"{namespace or 'the namespace'} has two of the name {name!r}; keep one of them"
            self._error("nad_twice", text, label, pointer)
        self._seen.add((namespace, name))

    # ---- entries of cni_networks

    def _entry(self, where: str, entry: dict[str, Any]) -> None:
        for text in no_options((key for key, value in entry.items() if value is not None), _ENTRY_KEYS):
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


class _TextPlace:
    """Where the embedded JSON of a manifest is in its YAML text."""

    def __init__(self, lines: Sequence[str], root: yaml.Node) -> None:
        self._lines = lines
        self._root = root

    def inside(self, pointer: Sequence[Any], line: Optional[int], column: Optional[int]) -> Optional[Position]:
        """Return the position in the text of a position in the string at *pointer*; None if YAML has rewritten it."""
        node = _node(self._root, pointer)
        if not isinstance(node, yaml.ScalarNode):
            return None
        start = node.start_mark
        if line is None or column is None:
            return start.line + 1, start.column + 1
        if node.style == "|" and start.line + line < len(self._lines):
            # Lines stay lines; each lost the indentation of the block.
            value = node.value.split("\n")[line - 1]
            raw = self._lines[start.line + line].rstrip("\r")
            if raw.endswith(value):
                return start.line + 1 + line, len(raw) - len(value) + column
        if node.style in ("'", '"') and start.line == node.end_mark.line and line == 1:
            # The opening quote is before it; another quote or a backslash may have moved what follows.
            raw = self._lines[start.line][start.column + 1 : start.column + column]
            if raw == node.value[: column - 1]:
                return start.line + 1, start.column + 1 + column
        return None


def _node(root: yaml.Node, pointer: Sequence[Any]) -> Optional[yaml.Node]:
    node: Optional[yaml.Node] = root
    for part in pointer:
        if isinstance(node, yaml.MappingNode):
            node = next((value for key, value in reversed(node.value) if key.value == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
        else:
            return None
    return node


def _finder(root: yaml.Node) -> _Find:
    def find(pointer: Sequence[Any]) -> Position:
        for length in range(len(pointer), -1, -1):
            node = _node(root, pointer[:length])
            if node is not None:
                return node.start_mark.line + 1, node.start_mark.column + 1
        return UNKNOWN

    return find


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
        yield Fault(
            ERROR, "nad_kind", f"this is {shown(manifest)}; a manifest is a mapping with apiVersion and kind", ()
        )
        return
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if manifest.get(key) != wanted:
            yield Fault(ERROR, "nad_kind", f"{key} is {shown(manifest.get(key))}; write {wanted}", (key,))
    yield from _metadata_findings(manifest.get("metadata"))
    spec = manifest.get("spec")
    if spec is not None and not isinstance(spec, dict):
        yield Fault(ERROR, "nad_spec", f"spec is {shown(spec)}; it must be a mapping with the key config", ("spec",))
        return
    for key in spec or {}:
        if key != "config":
            yield Fault(WARNING, "nad_spec", f"Multus does not read {key!r}; it reads config only", ("spec", key))
    config = (spec or {}).get("config")
    if isinstance(config, (dict, list)):
        text = "config is a mapping; it must be JSON in a string: write config: | and the JSON below it"
        yield Fault(ERROR, "nad_spec", text, _CONFIG)
    elif config is not None and not isinstance(config, str):
        yield Fault(ERROR, "nad_spec", f"config is {shown(config)}; it must be JSON in a string", _CONFIG)
    elif not config:
        text = "there is no config; Multus runs the file of its confDir whose network has this name"
        yield Fault(INFO, "nad_file", text, ("spec",))


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
    annotations = metadata.get("annotations")
    resource = annotations.get(RESOURCE_NAME) if isinstance(annotations, dict) else None
    if resource is not None and (not isinstance(resource, str) or re.fullmatch(_RESOURCE, resource) is None):
        text = f"{RESOURCE_NAME} is {shown(resource)}; write a resource of a device plugin, such as example.com/nic"
        yield Fault(ERROR, "nad_spec", text, ("metadata", "annotations", RESOURCE_NAME))


def _given_name(source: Union[_Config, TextSource], name: str) -> Optional[str]:
    """Return the name that a network without one gets; None if it has one, or is no network."""
    try:
        document = source.document()
    except (Unreadable, JSONError, RecursionError):
        return None
    has_none = isinstance(document, dict) and "name" not in document
    return name if has_none and not list(name_findings(name)) else None


def _refused(text: str, label: str) -> list[Finding]:
    """Return what Multus refuses of a network although libcni takes it."""
    try:
        load_delegate(text.encode("utf-8"))
    except NetworksError as error:
        return [Finding(ERROR, "refused_by_multus", f"Multus cannot load this: {error.msg}", "", label, error.pointer)]
    return []
