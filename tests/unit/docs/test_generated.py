# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""The generated files of the documentation are up to date, and the published schemas say what the collection's say."""

from __future__ import annotations

import json
import posixpath

import generate
import jsonschema
import pytest
import schemas
import yaml

ROOT = generate.ROOT
GENERATED = generate.generated()
SOURCES = sorted(path.relative_to(schemas.SOURCE).as_posix() for path in schemas.SOURCE.rglob("*.json"))
HEAD = "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition"
BUNDLES = ("conflist.json", "conf.json")


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_up_to_date(path):
    assert path.exists() and path.read_text(encoding="utf-8") == GENERATED[path], "run ./run generate"


def test_docs_schemas_has_no_other_file():
    assert set((ROOT / "docs" / "schemas").iterdir()) <= set(GENERATED)


def published(name):
    return json.loads((ROOT / "docs" / "schemas" / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", [*BUNDLES, schemas.NAD])
def test_a_published_schema_is_valid_and_has_the_address_of_its_file(name):
    document = published(name)
    jsonschema.Draft202012Validator.check_schema(document)
    assert document["$id"] == f"https://raw.githubusercontent.com/podwire/podwire.cni/main/docs/schemas/{name}"


def references(schema):
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(schema, list):
        for element in schema:
            yield from references(element)


@pytest.mark.parametrize("name", BUNDLES)
def test_a_published_schema_refers_to_itself_only(name):
    document = published(name)
    found = set(references(document))
    assert found
    for reference in found:
        assert reference.startswith("#/$defs/")
        place = document
        for part in reference.split("/")[1:]:
            place = place[part]


def apart(schema, path):
    """Return a schema of the collection with its references as a bundle writes them, by another way."""
    if isinstance(schema, list):
        return [apart(element, path) for element in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: apart(value, path) for key, value in schema.items()}
    if isinstance(schema.get("$ref"), str):
        file, _hash, pointer = schema["$ref"].partition("#")
        whole = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
        out["$ref"] = "#/$defs/" + whole[: -len(".json")].replace("/", ".") + pointer
    return out


@pytest.mark.parametrize("name", BUNDLES)
def test_a_published_schema_has_every_file_that_it_needs_word_by_word(name):
    document = published(name)
    files = {path[: -len(".json")].replace("/", "."): path for path in SOURCES}
    parts = document["$defs"]
    assert set(parts) == set(files) - {other[: -len(".json")] for other in BUNDLES}
    for part, content in parts.items():
        source = json.loads((schemas.SOURCE / files[part]).read_text(encoding="utf-8"))
        del source["$schema"]
        assert content == apart(source, files[part])


def problems(schema, document):
    return [error.json_path for error in jsonschema.Draft202012Validator(schema).iter_errors(document)]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (f"{HEAD}\nmetadata: {{name: a.b}}", []),
        (f"{HEAD}\nmetadata: {{name: A}}\nspec: {{config: 1}}", ["$.metadata.name", "$.spec.config"]),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}", ["$.apiVersion", "$.kind"]),
    ],
)
def test_the_schema_of_a_manifest(text, places):
    assert problems(published(schemas.NAD), yaml.safe_load(text)) == places


def test_the_linter_has_the_version_of_the_collection():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    assert f'\nname = "podwire-cni-lint"\nversion = "{version}"\n' in project
