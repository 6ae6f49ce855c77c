#!/usr/bin/python3
"""The program as a file: how it is hardened, and which libraries it loads when it needs them.

    binary_test.py CLAIMD
"""

import os
import re
import subprocess
import sys
import unittest

CLAIMD = os.path.realpath(sys.argv.pop(1))


def shown(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Hardening(unittest.TestCase):
    def test_it_is_position_independent(self):
        self.assertRegex(shown("readelf", "-hW", CLAIMD), r"Type: +DYN")

    def test_tables_of_the_linker_are_read_only_before_it_runs(self):
        self.assertIn("GNU_RELRO", shown("readelf", "-lW", CLAIMD))
        self.assertRegex(shown("readelf", "-dW", CLAIMD), r"FLAGS_1\).*\bNOW\b")

    def test_no_stack_is_executable(self):
        self.assertRegex(shown("readelf", "-lW", CLAIMD), r"GNU_STACK .* RW +0x")

    def test_stacks_have_canaries_and_calls_of_libc_know_the_size_of_buffers(self):
        names = shown("readelf", "--dyn-syms", "-W", CLAIMD)
        self.assertIn("__stack_chk_fail", names)
        self.assertRegex(names, r"__(snprintf|memcpy|printf|fprintf|vsnprintf)_chk")

    @unittest.skipUnless("X86-64" in shown("readelf", "-hW", CLAIMD), "knows these instructions only")
    def test_large_frames_touch_each_page(self):
        """Elsewhere nothing subtracts exactly a page and then touches it."""
        code = shown("objdump", "-d", "--no-show-raw-insn", CLAIMD)
        touches = r"sub +\$0x1000,%rsp\n[^\n]*\b(or|mov)[bq] +\$0x0,\(%rsp\)"
        self.assertTrue(re.search(touches, code))  # assertRegex() would print all of it


class Libraries(unittest.TestCase):
    def assert_loads(self, *names):
        """claimd has each of the names, with the version of the library that it was built for."""
        library = shown("cc", "-print-file-name=%s.so" % names[-1]).strip()
        version = re.search(r"SONAME\).*\.so\.(.+)\]", shown("readelf", "-d", library))[1]
        with open(CLAIMD, "rb") as f:
            content = f.read()
        for name in names:
            self.assertIn(("%s.so.%s\0" % (name, version)).encode(), content)

    def test_hiredis_is_the_one_it_was_built_for(self):
        self.assert_loads("libhiredis")

    def test_curl_is_the_one_it_was_built_for(self):
        self.assert_loads("libcurl-gnutls", "libcurl")


if __name__ == "__main__":
    unittest.main()
