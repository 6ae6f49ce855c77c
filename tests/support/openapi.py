"""An OpenAPI 3.1 document: what it says of requests, and responses held against it.

Its schemas are JSON Schema (2020-12). Responses are judged more strictly than a client should:
a member that an object's schema does not name is an error, unless it says that there may be
others.
"""

import copy
import re

import jsonschema

CLIENT = "3381af92-2b9e-11e3-b191-71861300734c"

FORMATS = jsonschema.FormatChecker(())


@FORMATS.checks("date-time")
def is_time(value):
    return not isinstance(value, str) or \
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", value) is not None


def closed(node):
    """The same schemas without capacity for what they do not name."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    shut = {name: closed(value) for name, value in node.items()}
    if node.get("type") == "object" and "properties" in node:
        shut.setdefault("additionalProperties", False)
    return shut


class Document:
    def __init__(self, tree):
        self.tree = tree
        # A resolver searches the whole document before its first use, and remembers what it found.
        self.resolver = jsonschema.RefResolver("", closed(copy.deepcopy(tree)))

    def resolved(self, node):
        """The node, or the one that its $ref names."""
        while "$ref" in node:
            found = self.tree
            for name in node["$ref"].removeprefix("#/").split("/"):
                found = found[name]
            node = found
        return node

    def operations(self):
        """{(method, path): operation}"""
        return {(method, path): operation for path, item in self.tree["paths"].items()
                for method, operation in item.items()}

    def parameters(self, operation, place):
        """{name: parameter} of those "in" a place."""
        found = (self.resolved(p) for p in operation.get("parameters", ()))
        return {p["name"]: p for p in found if p["in"] == place}

    # ------------------------------------------------------------------ responses

    def wrong(self, schema, value, where="response"):
        """The differences of a value from a schema of the document: a list of texts."""
        judge = jsonschema.Draft202012Validator(
            closed(schema), resolver=self.resolver, format_checker=FORMATS)
        return ["%s%s: %s" % (where, error.json_path[1:], error.message)
                for error in judge.iter_errors(value)]

    def _wrong_header(self, name, header, headers):
        header = self.resolved(header)
        text = headers.get(name)
        if text is None:
            return ["there is no header %s" % name] if header.get("required") else []
        schema = self.resolved(header["schema"])
        value = int(text) if schema["type"] == "integer" and text.isdigit() else text
        return self.wrong(schema, value, name)

    def wrong_response(self, method, path, status, headers, said, sparse=False):
        """
        The differences of a response from its description. `said` is None when the response had no body
        (which is right if `sparse`); headers is a mapping that does not mind case.
        """
        responses = self.operations()[method, path]["responses"]
        if str(status) not in responses:
            return ["%d is not described" % status]
        response = self.resolved(responses[str(status)])
        found = []
        for name, header in response.get("headers", {}).items():
            found += self._wrong_header(name, header, headers)
        content = response.get("content", {})
        if method == "head" or (said is None and (sparse or not content)):
            return found
        media = (headers.get("Content-Type") or "none").split(";")[0]
        if media not in content:
            return found + ["a body of type %s is not described" % media]
        return found + self.wrong(content[media]["schema"], said)

    # ------------------------------------------------------------------ requests

    def _kind(self, schema):
        kind = schema.get("type")
        return next(k for k in kind if k != "null") if isinstance(kind, list) else kind

    def example(self, schema):
        """The least that fits."""
        return next(self.good(schema))

    def good(self, schema):
        """Values that fit, the least of them first."""
        schema = self.resolved(schema)
        if "examples" in schema:
            yield from schema["examples"]
        elif "oneOf" in schema:
            for one in schema["oneOf"]:
                yield from self.good(one)
        elif "enum" in schema or "const" in schema:
            yield from schema.get("enum", [schema.get("const")])
        else:
            yield from getattr(self, "_good_%s" % self._kind(schema))(schema)
            if "null" in (schema.get("type") or ()):
                yield None

    def _good_None(self, _):
        yield {"any": ["value", 1.5]}

    def _good_boolean(self, _):
        yield from (False, True)

    def _good_integer(self, schema):
        yield schema.get("minimum", 1)
        yield schema.get("maximum", schema.get("minimum", 1) + 1)

    def _good_string(self, schema):
        if schema.get("format") == "uuid":
            yield CLIENT
        else:
            least = max(schema.get("minLength", 1), 1)
            yield "q" * least
            if "maxLength" in schema:
                yield "q" * schema["maxLength"]

    def _good_array(self, schema):
        least = max(schema.get("minItems", 0), 1)
        for value in self.good(schema["items"]):
            yield [value] * least
        if "maxItems" in schema:
            yield [self.example(schema["items"])] * schema["maxItems"]

    def _good_object(self, schema):
        members = schema.get("properties", {})
        least = {name: self.example(members[name]) for name in schema.get("required", ())}
        if len(least) >= schema.get("minProperties", 0):
            yield least
        for name, member in members.items():
            for value in self.good(member):
                yield {**least, name: value}

    def bad(self, schema):
        """Values that do not fit, each for one reason."""
        schema = self.resolved(schema)
        if "oneOf" in schema:
            kinds = [set(map(repr, self.bad(one))) for one in schema["oneOf"]]
            for value in self.bad(schema["oneOf"][0]):
                if all(repr(value) in kind for kind in kinds[1:]):
                    yield value
        elif "enum" in schema or "const" in schema:
            yield from ("nonsense", 7, ["x"])
        elif self._kind(schema) is not None:
            yield from getattr(self, "_bad_%s" % self._kind(schema))(schema)

    def _bad_boolean(self, _):
        yield from ("maybe", 2)

    def _bad_integer(self, schema):
        yield from ("x", 1.5, True, [1])
        if "minimum" in schema:
            yield schema["minimum"] - 1
        if "maximum" in schema:
            yield schema["maximum"] + 1

    def _bad_number(self, schema):
        yield from ("x", True, [1])
        if "minimum" in schema:
            yield schema["minimum"] - 1

    def _bad_string(self, schema):
        yield from (1, {"x": 1})
        if "pattern" in schema:
            yield from (text for text in ("a b", "q" * 65, "q" * 129)
                        if not re.search(schema["pattern"], text))

    def _bad_array(self, schema):
        yield from ({"x": 1}, "x", 1)
        if schema.get("minItems", 0) > 0:
            yield []
        if "maxItems" in schema:
            yield [self.example(schema["items"])] * (schema["maxItems"] + 1)
        least = max(schema.get("minItems", 0), 1) - 1
        for value in self.bad(schema["items"]):
            yield [self.example(schema["items"])] * least + [value]

    def _bad_object(self, schema):
        yield from (["x"], "x", 1)
        members = schema.get("properties", {})
        least = {name: self.example(members[name]) for name in schema.get("required", ())}
        for name in least:
            yield {other: value for other, value in least.items() if other != name}
        for name, member in members.items():
            for value in self.bad(member):
                yield {**least, name: value}
        if "propertyNames" in schema:
            yield {"_x": 1}
