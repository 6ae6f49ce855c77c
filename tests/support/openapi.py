"""Answers held against an OpenAPI document: as much of it as docs/openapi.yaml uses.

A word of a schema that is not known here is an error, so that nothing is passed over.
"""

import re

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
NOTES = {"description", "example", "default", "title"}


class Document:
    def __init__(self, tree):
        self.tree = tree

    def resolved(self, node):
        """What a node is, or what its $ref names."""
        if "$ref" not in node:
            return node
        found = self.tree
        for name in node["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        return found

    def operations(self):
        """{(method, path): operation}"""
        return {(method, path): operation for path, item in self.tree["paths"].items()
                for method, operation in item.items() if method != "parameters"}

    def wrong(self, schema, value, where="answer"):
        """What of a value is not as the schema says: a list of texts."""
        schema = self.resolved(schema)
        known = NOTES | {"type", "required", "properties", "items", "enum", "nullable", "format",
                         "additionalProperties", "maxItems", "minItems", "minimum", "maximum",
                         "pattern", "maxLength"}
        if set(schema) - known:
            raise ValueError("unknown words in a schema: %r" % (set(schema) - known))
        if value is None and schema.get("nullable"):
            return []
        kind = schema.get("type")
        if kind and (not isinstance(value, TYPES[kind])
                     or (kind == "integer" and isinstance(value, bool))):
            return ["%s is not of type %s: %r" % (where, kind, value)]
        return self._wrong_inside(schema, value, where)

    def _wrong_inside(self, schema, value, where):
        found = []
        if "enum" in schema and value not in schema["enum"]:
            found.append("%s is none of %r: %r" % (where, schema["enum"], value))
        if schema.get("format") == "date-time" and \
                not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", value):
            found.append("%s is no time: %r" % (where, value))
        if isinstance(value, list):
            if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
                found.append("%s has %d items" % (where, len(value)))
            for n, item in enumerate(value):
                found += self.wrong(schema.get("items", {}), item, "%s[%d]" % (where, n))
        if isinstance(value, dict):
            found += ["%s lacks %s" % (where, name) for name in schema.get("required", ())
                      if name not in value]
            properties = schema.get("properties", {})
            for name, item in value.items():
                if name in properties:
                    found += self.wrong(properties[name], item, "%s.%s" % (where, name))
                elif properties and not schema.get("additionalProperties"):
                    found.append("%s has %s, which is not described" % (where, name))
        return found

    def wrong_answer(self, method, path, status, headers, document):
        """
        What of an answer is not as described. `document` is None when the answer had no
        body; headers is a mapping that does not mind case.
        """
        responses = self.operations()[method, path]["responses"]
        if str(status) not in responses:
            return ["%d is not described" % status]
        response = self.resolved(responses[str(status)])
        found = ["there is no header %s" % name for name, header
                 in response.get("headers", {}).items()
                 if header.get("required") and headers.get(name) is None]
        content = response.get("content", {})
        if method == "head" or (document is None and not content):
            return found
        media = (headers.get("Content-Type") or "none").split(";")[0]
        if media not in content:
            return found + ["a body of type %s is not described" % media]
        return found + self.wrong(content[media]["schema"], document)
