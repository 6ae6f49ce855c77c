#!/usr/bin/python3
"""The rules for mutants change code as they say, and leave everything else alone."""

import unittest

from rules import candidates, describe, mutate

HEAD = '''/* if (a < 1) */
#define LIMIT(a) \\
    ((a) + 1)

static const int table[] = {1, 2};

'''

FUNCTION = '''static enum status
function(int a, int b)
{
    %s
}
'''


class Rules(unittest.TestCase):
    def changes(self, line, kind=None):
        """The mutants of a line of a function."""
        text = HEAD + FUNCTION % line
        first = (HEAD + FUNCTION).count("\n", 0, (HEAD + FUNCTION).index("%s"))
        for change in candidates(text):
            self.assertGreater(describe(text, change)[0], first)
        return [mutate(text, change)[len(HEAD + FUNCTION) - len("%s\n}\n"):-len("\n}\n")]
                for change in candidates(text) if kind in (None, change.kind)]

    def test_operators_are_swapped(self):
        self.assertEqual(self.changes("a = b < a;"), ["a = b <= a;"])
        self.assertEqual(self.changes("a = b != a;"), ["a = b == a;"])
        self.assertEqual(self.changes("a += b;"), ["a -= b;"])
        self.assertEqual(self.changes("a = a << b;"), ["a = a >> b;"])
        self.assertEqual(self.changes("a = a && b;"), ["a = a || b;"])

    def test_pointers_and_signs_are_no_operators(self):
        self.assertEqual(self.changes("*p->q = -a;"), [])
        self.assertEqual(self.changes("p = &a;"), [])
        self.assertEqual(self.changes("char *p;"), [])

    def test_constants_change_by_one(self):
        self.assertEqual(self.changes("a = 0;"), ["a = 1;"])
        self.assertEqual(self.changes("a = 1u;"), ["a = 0u;"])
        self.assertEqual(self.changes("a = 4095;"), ["a = 4096;"])
        self.assertEqual(self.changes("a = x1;"), [])
        self.assertEqual(self.changes("a = 0x10;"), [])

    def test_conditions_are_negated(self):
        self.assertEqual(self.changes('if (f(a, "x"))\n        return a;'),
                         ['if (!(f(a, "x")))\n        return a;'])
        self.assertEqual(self.changes("return !f(a);"), ["return f(a);"])
        self.assertEqual(self.changes("if (a != b)\n        return a;", "condition"),
                         ["if (!(a != b))\n        return a;"])

    def test_returned_statuses_change(self):
        self.assertEqual(self.changes("return ST_FULL;"), ["return ST_OK;"])
        self.assertEqual(self.changes("return st;"), ["return ST_OK;"])
        self.assertEqual(self.changes("return ST_OK;"), ["return ST_NO_MEMORY;"])
        self.assertEqual(self.changes("return a ? ST_OK : ST_IO;"), ["return a ? ST_IO : ST_OK;"])
        self.assertEqual(self.changes("return true;"), ["return false;"])
        self.assertEqual(self.changes("return a;"), [])

    def test_a_success_becomes_a_failure_that_the_file_knows(self):
        self.assertIn("return ST_IO;\n    return ST_IO;",
                      self.changes("return ST_IO;\n    return ST_OK;"))

    def test_calls_without_a_use_of_their_result_are_removed(self):
        self.assertEqual(self.changes("int c;\n\n    f(a, g(b));"), ["int c;\n\n    ;"])
        self.assertEqual(self.changes("int c;\n\n    (void)f(a,\n            b);"), ["int c;\n\n    \n;"])
        self.assertEqual(self.changes("a = b;\n    a = f(b);"), [])
        self.assertEqual(self.changes("a = g(b,\n          f(b));"), [])

    def test_calls_that_only_release_something_stay(self):
        self.assertEqual(self.changes("int c;\n\n    mem_free(a);"), [])
        self.assertEqual(self.changes("int c;\n\n    buf_fini(a);"), [])

    def test_assertions_texts_and_comments_stay(self):
        self.assertEqual(self.changes("ENSURE(a < b && (a == 1 ||\n                     b > 2));"), [])
        self.assertEqual(self.changes("lock_assert_held(a);"), [])
        self.assertEqual(self.changes('p = "a < 1";'), [])
        self.assertEqual(self.changes("c = '1'; /* a < 1 */"), [])
        self.assertEqual(self.changes("a = b; // a < 1"), [])
        self.assertEqual(self.changes("char text[16];"), [])

    def test_lines_keep_their_numbers(self):
        for line in ("if (a &&\n        b)\n        f(a);", "f(a);\n    f(a,\n      b);"):
            for changed in self.changes(line):
                self.assertEqual(changed.count("\n"), line.count("\n"))


if __name__ == "__main__":
    unittest.main()
