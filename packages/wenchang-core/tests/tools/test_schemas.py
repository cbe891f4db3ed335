"""The schemas and descriptions that frameworks register."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from wenchang.errors import InvalidArgumentError
from wenchang.schemas import ToolSchema, error_schema, tool_schemas
from wenchang.tools import TOOL_NAMES, MemoryTools, bind_tools, tool_descriptions

SCHEMAS = tool_schemas()


def walk(schema):
    yield schema
    for value in schema.get("properties", {}).values():
        yield from walk(value)
    if "items" in schema:
        yield from walk(schema["items"])


def test_mem_052_the_schemas_stand_in_tool_order_and_are_read_only():
    assert tuple(SCHEMAS) == TOOL_NAMES
    assert all(isinstance(schema, ToolSchema) for schema in SCHEMAS.values())
    assert [schema.name for schema in SCHEMAS.values()] == list(TOOL_NAMES)
    with pytest.raises(TypeError):
        SCHEMAS["read_file"] = None
    with pytest.raises(AttributeError):
        SCHEMAS["read_file"].name = "x"


@pytest.mark.parametrize("name", TOOL_NAMES)
@pytest.mark.parametrize("part", ["input", "output", "error"])
def test_mem_052_every_schema_is_valid_draft_2020_12_and_closed(name, part):
    schema = getattr(SCHEMAS[name], part)

    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for node in walk(schema):
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert set(node["required"]) <= set(node["properties"])
            assert all(value.get("description") for value in node["properties"].values())


@pytest.mark.parametrize("name", TOOL_NAMES)
def test_mem_052_the_input_schema_is_the_signature(name):
    parameters = dict(inspect.signature(getattr(MemoryTools, name)).parameters)
    del parameters["self"]
    schema = SCHEMAS[name].input

    assert list(schema["properties"]) == list(parameters)
    assert schema["required"] == [
        key for key, value in parameters.items() if value.default is inspect.Parameter.empty
    ]


def test_mem_052_nullable_are_exactly_the_optional_ones_and_the_version_of_write_file():
    nullable = {
        f"{name}.{argument}"
        for name, schema in SCHEMAS.items()
        for argument, rules in schema.input["properties"].items()
        if "null" in rules["type"]
    }

    assert nullable == {
        "list_prefix.area",
        "list_prefix.cursor",
        "write_file.expected_version",
        "append_line.aliases",
        "append_line.description",
        "replace_fact.aliases",
        "replace_fact.description",
    }


def test_mem_052_the_error_schema_is_the_one_of_every_tool():
    assert all(schema.error == error_schema() for schema in SCHEMAS.values())


def test_mem_052_changing_a_returned_schema_changes_nothing_else():
    tool_schemas()["read_file"].input["properties"].clear()
    error_schema()["properties"].clear()

    assert tool_schemas()["read_file"].input["properties"]
    assert error_schema()["properties"]


def test_mem_053_one_text_describes_a_tool_everywhere(world):
    for product in (None, "Acme {product} & Co"):
        texts = tool_descriptions(product)
        bound = bind_tools(
            world.client, world.resolver, None, world.policy, source="s", product=product
        )
        assert tuple(texts) == TOOL_NAMES
        assert dict(bound.descriptions()) == dict(texts)
        assert {name: schema.description for name, schema in tool_schemas(product).items()} == dict(
            texts
        )


@pytest.mark.parametrize("name", TOOL_NAMES)
def test_mem_053_the_first_line_names_the_product(name):
    plain, named = tool_descriptions()[name], tool_descriptions("Acme {0}")[name]

    assert "Acme {0}" in named.splitlines()[0]
    assert plain.splitlines()[1:] == named.splitlines()[1:]
    assert plain.isascii()
    assert all(len(line) <= 200 for line in plain.splitlines())


@pytest.mark.parametrize("product", ["", " ", "a\nb", "a\x00"])
def test_mem_053_a_product_is_one_line_of_text(product):
    with pytest.raises(ValueError):
        tool_descriptions(product)


@pytest.mark.parametrize("module", ["wenchang.schemas", "wenchang.tools", "wenchang.prompts"])
def test_mem_054_no_extra_is_needed(module):
    program = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in {'mcp', 'pydantic', 'jsonschema', 'pytest', 'anyio'}:\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Block())\n"
        f"import {module}\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


ANY_JSON = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.text(max_size=6),
    st.sampled_from(["user", "prefs", "tea", "- [stated] x", "x" * 5001, "a\u2028b", "..", "A"]),
    st.lists(st.one_of(st.text(max_size=3), st.none(), st.just("a\nb")), max_size=3),
    st.dictionaries(st.text(max_size=2), st.none(), max_size=1),
)


@pytest.mark.parametrize("name", [name for name in TOOL_NAMES if name != "get_memory_index"])
@given(data=st.data())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_mem_061_whatever_a_schema_refuses_the_tool_refuses_too(world, name, data):
    """The tools check values themselves, so a surface only has to check the names of arguments."""
    schema = SCHEMAS[name].input
    usual = {"scope": "user", "area": "prefs", "name": "tea"}
    arguments = {
        argument: data.draw(
            st.one_of(st.just(usual[argument]), ANY_JSON) if argument in usual else ANY_JSON,
            label=argument,
        )
        for argument in schema["properties"]
    }
    tools = bind_tools(world.client, world.resolver, None, world.policy, source="s")
    if Draft202012Validator(schema).is_valid(arguments):
        return

    with pytest.raises(InvalidArgumentError):
        tools.tools()[name](**arguments)

    assert world.keys() == []
