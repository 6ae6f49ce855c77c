#!/usr/bin/python3
"""The patterns of the transcripts accept what they should, and nothing else."""

import unittest

from patterns import Mismatch, expand, match, match_headers


class Patterns(unittest.TestCase):
    def good(self, pattern, got):
        match(pattern, got)

    def bad(self, pattern, got):
        with self.assertRaises(Mismatch):
            match(pattern, got)

    def test_plain_values_must_be_equal_and_of_one_type(self):
        self.good({"a": [1, "x", None, True, 1.5]}, {"a": [1, "x", None, True, 1.5]})
        self.bad(1, 2)
        self.bad(1, True)
        self.bad(0, None)
        self.bad("1", 1)
        self.bad([1], [1, 2])
        self.bad({"a": 1}, [1])

    def test_objects_have_the_members_named_and_no_others(self):
        self.bad({"a": 1}, {"a": 1, "b": 2})
        self.bad({"a": 1, "b": 2}, {"a": 1})
        self.good({"a": 1, "{{more}}": True}, {"a": 1, "b": 2})

    def test_numbers_may_be_bounded(self):
        self.good("{{*int:0..5}}", 5)
        self.bad("{{*int:0..5}}", 6)
        self.bad("{{*int}}", 1.5)
        self.bad("{{*int}}", True)
        self.bad("{{*int}}", "1")
        self.good("{{*num}}", 1.5)

    def test_wildcards_stand_inside_a_text(self):
        self.good("/q/{{*id}}?x={{*opaque}}", "/q/abc?x=1")
        self.bad("/q/{{*id}}", "/q/a/b")
        self.bad("/q/{{*id}}", "/q/")
        self.bad("a.c", "abc")
        self.good("{{*re:[a-z]+}}", "abc")
        self.bad("{{*re:[a-z]+}}", "ABC")
        self.good("/{{*re:[a-z]{3}}}", "/abc")

    def test_the_order_counts_unless_it_is_said_not_to(self):
        self.bad([1, 2], [2, 1])
        self.good({"{{unordered}}": [1, 2]}, [2, 1])
        self.bad({"{{unordered}}": [1, 1]}, [1, 2])

    def test_the_order_of_parameters_of_a_link_does_not_count(self):
        self.good({"href": "/m?a=1&b=2"}, {"href": "/m?b=2&a=1"})
        self.bad({"href": "/m?a=1"}, {"href": "/m?a=1&b=2"})

    def test_variables_are_filled_in_and_a_lone_one_keeps_its_type(self):
        self.assertEqual(expand({"x": "{{n}}", "y": "n={{n}}"}, {"n": 7}), {"x": 7, "y": "n=7"})
        self.assertEqual(expand("{{repeat:ab:3}}", {}), "ababab")
        with self.assertRaises(Mismatch):
            expand("{{unknown}}", {})

    def test_headers_may_be_forbidden(self):
        match_headers({"X": None}, {})
        match_headers({"Allow": "GET, PUT"}, {"allow": "PUT, GET"})
        for expected, got in (({"X": None}, {"x": "1"}), ({"X": "1"}, {})):
            with self.assertRaises(Mismatch):
                match_headers(expected, got)


if __name__ == "__main__":
    unittest.main()
