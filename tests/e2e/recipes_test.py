#!/usr/bin/python3
"""Follows a small case of each recipe of docs/contributing.md, which names each file that changes.

    recipes_test.py CMAKE

The changes are made in a copy of the source. It is built, and runs the tests that the recipes name.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CMAKE = sys.argv.pop(1)
PAGE = "docs/contributing.md"

HANDLER = '''/* first: a request to begin with. Declared in handlers.h. Read versions.c next. */
#include "api/handlers/handlers.h"
#include "api/response.h"

/* GET /claimd/first */
enum status
handle_first(struct context *ctx)
{
    return response_empty(ctx, 204);
}
'''

OPERATION = '''  "/claimd/first": {
   "get": {
    "operationId": "showFirst",
    "tags": ["service"],
    "summary": "Begin",
    "parameters": [{"$use": "project"}],
    "responses": {
     "204": {"description": "It has begun", "headers": {"X-Request-ID": {"$ref": "#/components/headers/RequestId"}}},
     "$use": "errors_project"
    },
    "x-roles $if access": {"home:get": "${roles home:get}"}
   }
  },
'''

COMMAND = '''
static int
run_first(const struct command_args *args)
{
    (void)args;
    puts("It has begun.");
    return COMMAND_GOOD;
}

const struct command client_first = {
    .about = "Prints a line.", .example = "claimd first", .run = run_first};
'''

# For each recipe the insertions: the file, the text, and the line (a pattern) that it stands before.
RECIPES = {
    "Add an option": [
        ("src/main/option_table.c", '    NUMBER(0, first, 0, 9, "N", "4", "A number to begin with."),\n',
         r"    NUMBER\(0, workers,"),
        ("src/main/config.h", "    int64_t first;\n", r"    int64_t shards;"),
    ],
    "Add a route": [
        ("src/api/versions.c", '    ROUTE("/claimd/first", GET, handle_first, HOME_GET, 0, "showFirst"),\n',
         r'    ROUTE\("/claimd/permissions"'),
        ("src/api/handlers/handlers.h", "handler_fn handle_first;\n", r"handler_fn handle_permissions;"),
        ("src/api/handlers/first.c", HANDLER, None),
        ("src/api/openapi/openapi.json", OPERATION, r'  "/claimd/permissions": {'),
        ("tests/api/cells_test.c", '    {"/claimd/first", {"home:get"}},\n', r'    {"/claimd/permissions",'),
    ],
    "Add a member to a response": [
        ("src/api/handlers/ui.c", '    json_write_flag(out, "first", true);\n', r"    st = write_actions\(ctx\);"),
        ("src/api/openapi/openapi.json", '          "first": {"type": "boolean"},\n',
         r'          "all_projects": {"type": "boolean"},'),
    ],
    "Add a command": [
        ("include/claimd/client/commands.h", '    X(first, "first", "Begin.") \\\n', r"    X\(purge,"),
        ("src/client/change_commands.c", COMMAND, None),
    ],
    "Add a metric": [
        ("src/http/metrics.c", '    metric_write(x, FAMILY_GAUGE, "claimd_first", NULL, "A number to begin with.", 4, 0);\n',
         r'    metric_write\(x, FAMILY_GAUGE, "claimd_workers"'),
        ("docs/metrics.md", "| `claimd_first` | gauge |  | A number to begin with. |  |\n", r"\| `claimd_workers` \|"),
    ],
}

TARGETS = ("claimd", "claimd-client", "claimd_generated", "api_openapi_test", "api_cells_test",
           "unit_main_config_test")


def recipe(title):
    """The text of a recipe."""
    with open(os.path.join(ROOT, PAGE), encoding="utf-8") as page:
        return re.search(r"^### %s\n(.*?)^(?:###? |Security)" % title, page.read(), re.M | re.S)[1]


class Recipes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="claimd-recipes-"))
        cls.root = os.path.join(scratch, "claimd")
        shutil.copytree(ROOT, cls.root, ignore=shutil.ignore_patterns("build", ".git", "__pycache__"))
        for insertions in RECIPES.values():
            for insertion in insertions:
                cls.insert(*insertion)
        cls.count_one_more()
        cls.run_there(CMAKE, "--preset", "debug")
        # One job at a time, because other tests run meanwhile.
        cls.run_there(CMAKE, "--build", "build/debug", "--parallel", "1", "--target", *TARGETS)
        cls.claimd = os.path.join(cls.root, "build/debug/claimd")

    @classmethod
    def insert(cls, path, text, before):
        """Inserts the text before the only line that begins so; None: at the end, also of a new file."""
        path = os.path.join(cls.root, path)
        old = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                old = file.read()
        if before is None:
            new = old + text
        else:
            new, count = re.subn("^(?=%s)" % before, lambda _: text, old, flags=re.M)
            assert count == 1, (path, before, count)
        with open(path, "w", encoding="utf-8") as file:
            file.write(new)

    @classmethod
    def count_one_more(cls):
        """The recipe of a metric: "Correct the counts"."""
        path = os.path.join(cls.root, "docs/metrics.md")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(r"(?<=^\| what is always there \| \| )\d+", lambda m: str(int(m[0]) + 1),
                              text, flags=re.M))

    @classmethod
    def run_there(cls, *words):
        run = subprocess.run(words, cwd=cls.root, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise AssertionError("%s\n%s%s" % (" ".join(words), run.stdout[-8000:], run.stderr[-8000:]))
        return run.stdout

    def run_test(self, name, *words):
        self.run_there("/usr/bin/python3", "-B", "tests/e2e/" + name, self.claimd, *words)

    def test_a_recipe_names_each_file(self):
        for title, insertions in RECIPES.items():
            text = recipe(title)
            for path, *_ in insertions:
                name = os.path.basename(path)
                self.assertTrue(name in text or os.path.dirname(path) in text, (title, path))

    def test_the_option_is_read_printed_and_documented(self):
        self.assertIn("first = 7", self.run_there(self.claimd, "--first", "7", "--print-config"))
        with open(os.path.join(self.root, "build/debug/generated/options"), encoding="utf-8") as page:
            self.assertIn("A number to begin with.", page.read())
        self.run_there("build/debug/tests/unit_main_config_test")

    def test_the_route_is_described_and_each_role_has_its_cells(self):
        self.run_there("build/debug/tests/api_openapi_test")
        self.run_there("build/debug/tests/api_cells_test", "every_route_is_in_the_table")

    def test_the_command_is_in_the_help_and_runs(self):
        self.assertEqual(self.run_there(self.claimd, "first", "--project", "p"), "It has begun.\n")
        self.assertIn("Prints a line.", self.run_there(self.claimd, "first", "--help"))

    def test_the_member_and_the_route_respond_as_described(self):
        self.run_test("openapi_test.py", "Defaults")

    def test_the_metric_is_the_one_of_the_table(self):
        self.run_test("metrics_test.py", "Format")


if __name__ == "__main__":
    unittest.main()
