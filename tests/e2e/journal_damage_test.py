#!/usr/bin/python3
"""claimd refuses directories that it cannot use (exit status 1) and damaged journals (exit status 3), and
starts where a crash explains the state.

    journal_damage_test.py CLAIMD
"""

import os
import shutil
import struct
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from harness import run  # noqa: E402
from journalled import (FRAME_HEAD_BYTES, HEAD_BYTES, JournalCase, crc32c,  # noqa: E402
                        flip, frames, is_seal)

NOBODY = 65534


def write_head(path, offset, data):
    """Changes a segment's head, whose checksum is right afterwards."""
    with open(path, "r+b") as f:
        head = bytearray(f.read(HEAD_BYTES))
        head[offset:offset + len(data)] = data
        head[-4:] = struct.pack("<I", crc32c(head[:-4]))
        f.seek(0)
        f.write(head)


class Directories(JournalCase):
    def test_a_second_daemon_is_refused(self):
        self.start()
        self.refused(1, self.path, "another process uses it")
        self.post("q", 1)
        self.crash_and_start()
        self.assertEqual(self.bodies("q"), [1])

    def test_a_file_instead_of_a_directory(self):
        with open(self.path, "w", encoding="ascii") as f:
            f.write("mine")
        self.refused(1, self.path, "Not a directory")
        with open(self.path, encoding="ascii") as f:
            self.assertEqual(f.read(), "mine")

    def test_a_parent_that_is_not_there(self):
        self.refused(1, "No such file or directory",
                     path=os.path.join(self.path, "deeper", "still"))

    def refused_to_nobody(self, mode, *parts):
        """Root may do everything: the daemon runs as a user that may not."""
        if os.getuid() != 0:
            self.skipTest("only root can start it as another user")
        os.chmod(self.folder, 0o755)
        os.makedirs(self.path, exist_ok=True)
        os.chmod(self.path, mode)
        nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.refused(1, self.path, "Permission denied for user nobody", *parts, popen=nobody)

    def test_a_file_of_another_user(self):
        os.mkdir(self.path)
        if os.getuid() == 0:
            os.chown(self.path, NOBODY, NOBODY)
        name = "0000000000000001.log"
        with open(os.path.join(self.path, name), "w", encoding="ascii"):
            os.chmod(os.path.join(self.path, name), 0o600)
        self.refused_to_nobody(0o700, "cannot read " + name, "chown -R USER DIR")

    def test_a_directory_that_is_read_only(self):
        self.refused_to_nobody(0o555)

    def test_foreign_files_are_left_alone(self):
        self.start()
        self.post("q", 1)
        self.crash()
        foreign = ["README", "0000000000000001.log.bak", "1.log", "000000000000000G.log",
                   "00000000000000AB.log", ".hidden"]
        for name in foreign:
            with open(os.path.join(self.path, name), "w", encoding="ascii") as f:
                f.write(name)
        os.mkdir(os.path.join(self.path, "folder"))
        self.start()
        self.assertEqual(self.bodies("q"), [1])
        self.stop()
        for name in foreign:
            with open(os.path.join(self.path, name), encoding="ascii") as f:
                self.assertEqual(f.read(), name)
        self.assertTrue(os.path.isdir(os.path.join(self.path, "folder")))


class Damage(JournalCase):
    def fill(self, restarts=0, posts=3):
        """A journal in which every post is a frame of its own; it was killed in the end."""
        self.start()
        for turn in range(restarts + 1):
            for i in range(posts):
                self.post("q", [turn, i])
            if turn < restarts:
                self.crash_and_start()
        self.crash()
        return self.segments()

    def assert_starts(self, bodies, torn):
        server = self.start()
        self.assertEqual(self.bodies("q"), bodies)
        server.logged(" started ")
        said = [line for line in server.log if " journal_torn " in line]
        self.assertEqual(len(said), 1 if torn else 0, server.log)

    def test_spares_that_are_not_whole_or_have_a_head(self):
        """A crash may have come while one was made, or while its head was written."""
        segment = self.fill()[0]
        os.truncate(os.path.join(self.path, "spare.0"), 5000)
        with open(segment, "rb") as f:
            head = f.read(HEAD_BYTES)
        with open(os.path.join(self.path, "spare.1"), "r+b") as f:
            f.write(head)
        for turn in range(3):
            self.assert_starts([[0, 0], [0, 1], [0, 2]] + turn * ["more"], torn=False)
            self.post("q", "more")
            self.crash()
        *left, last = [os.path.getsize(path) for path in self.segments()]
        self.assertEqual(last, 8 << 20)
        self.assertLess(max(left), 1 << 20)  # they are not written any more

    def test_a_missing_segment_in_the_middle(self):
        """Or an empty one, or one of zeros."""
        segments = self.fill(restarts=2)
        self.assertEqual(len(segments), 3)
        for size in (8 << 20, 0):
            os.truncate(segments[1], 0)
            os.truncate(segments[1], size)
            self.refused(3, os.path.basename(segments[1]) + " at byte 0 ")
        os.unlink(segments[1])
        self.refused(3, self.path, "damaged", os.path.basename(segments[2]))

    def test_the_first_segment_is_missing(self):
        """No checkpoint has written its records again, and no other file names the segment."""
        segments = self.fill(restarts=2)
        os.unlink(segments[0])
        self.refused(3, self.path, "damaged")
        shutil.rmtree(self.path)
        self.start()
        self.post("lost", 1)
        self.crash_and_start()
        self.post("kept", 1)
        self.crash()
        segments = self.segments()
        os.unlink(segments[0])
        self.refused(3, self.path, "damaged", os.path.basename(segments[1]))

    def test_a_last_segment_that_no_crash_leaves(self):
        """A segment gets its name when its head and its size are durable, and a clean stop
        writes down how far the log was durable."""
        self.fill()
        self.start()
        self.post("q", "last")
        self.stop()
        last = os.path.basename(self.segments()[-1])
        for size, zeros in ((None, False), (0, False), (HEAD_BYTES, False), (0, True),
                            (HEAD_BYTES, True), (HEAD_BYTES + 100, False)):
            with self.subTest(size=size, zeros=zeros):
                copy = os.path.join(self.folder, "copy")
                shutil.copytree(self.path, copy)
                cut = os.path.join(copy, last)
                whole = os.path.getsize(cut)
                if size is None:
                    os.unlink(cut)
                else:
                    os.truncate(cut, size)
                if zeros:
                    os.truncate(cut, whole)
                self.refused(3, "the journal is damaged: ", last, path=copy)
                done = run("verify", copy)
                self.assertEqual(done.returncode, 3, done)
                self.assertIn("missing LSN", done.stdout)
                shutil.rmtree(copy)
        self.start()
        self.assertEqual(self.bodies("q"), [[0, 0], [0, 1], [0, 2], "last"])

    def test_all_segments_are_missing(self):
        for segment in self.fill():
            os.unlink(segment)
        self.refused(3, "the journal is damaged: 0000000000000001.log is missing, or durable-lsn "
                     "belongs to another journal. ")

    def test_a_flipped_byte_in_an_old_frame(self):
        segment = self.fill()[0]
        offset, size = frames(segment)[-2]
        for where in (0, 5, 12, 45, 61, FRAME_HEAD_BYTES, size - 1):
            flip(segment, offset + where)
            self.refused(3, "%s at byte %d " % (os.path.basename(segment), offset))
            flip(segment, offset + where)
        self.assert_starts([[0, 0], [0, 1], [0, 2]], torn=False)

    def test_a_flipped_byte_in_a_segment_before_the_last(self):
        segments = self.fill(restarts=1)
        offset, _ = frames(segments[0])[-1]
        flip(segments[0], offset + FRAME_HEAD_BYTES)
        self.refused(3, "%s has no valid frame at byte %d, after LSN "
                     % (os.path.basename(segments[0]), offset), os.path.basename(segments[1]))

    def test_a_flipped_byte_in_a_head(self):
        segment = self.fill()[0]
        for where in (0, 8, 33, 49, 2000, HEAD_BYTES - 1):
            flip(segment, where)
            self.refused(3, os.path.basename(segment) + " at byte 0 ")
            flip(segment, where)
        self.assert_starts([[0, 0], [0, 1], [0, 2]], torn=False)

    def unsealed(self):
        """A journal whose last frame is a post, not a seal: killed before an idle second."""
        for _ in range(10):
            segment = self.fill()[0]
            offset, size = frames(segment)[-1]
            if not is_seal(segment, offset):
                return segment, offset, size
            shutil.rmtree(self.path)
        return self.fail("it always had an idle second before it was killed")

    def test_a_flipped_byte_in_the_very_last_frame_is_a_torn_one(self):
        segment, offset, size = self.unsealed()
        flip(segment, offset + size - 1)
        self.assert_starts([[0, 0], [0, 1]], torn=True)
        self.post("q", "more")
        self.crash_and_start()
        self.assertEqual(self.bodies("q"), [[0, 0], [0, 1], "more"])

    def test_a_tail_that_was_cut_off(self):
        segment, offset, size = self.unsealed()
        whole = os.path.getsize(segment)
        for keep in (size - 16, FRAME_HEAD_BYTES, 3):  # its last bytes may be zeros
            copy = os.path.join(self.folder, "cut-%d" % keep)
            shutil.copytree(self.path, copy)
            cut = os.path.join(copy, os.path.basename(segment))
            os.truncate(cut, offset + keep)
            os.truncate(cut, whole)
            server = self.start(path=copy)
            self.assertEqual(self.bodies("q"), [[0, 0], [0, 1]])
            server.logged(" journal_torn ")
            self.stop()
        os.truncate(segment, offset + size - 16)  # the file ends there, as after a copy
        self.assert_starts([[0, 0], [0, 1]], torn=True)

    def test_after_an_idle_second_it_is_damage(self):
        self.start()
        self.post("q", 1)
        self.await_seal()
        self.crash()
        segment = self.segments()[0]
        offset, size = frames(segment)[-2]
        flip(segment, offset + size - 1)
        self.refused(3, "%s at byte %d " % (os.path.basename(segment), offset))

    def test_a_newer_version_or_an_unknown_feature(self):
        segment = self.fill()[0]
        name = os.path.basename(segment)
        write_head(segment, 8, struct.pack("<I", 2))
        self.refused(3, name, "newer", "version 2")
        write_head(segment, 8, struct.pack("<I", 1))
        write_head(segment, 16, struct.pack("<Q", 1 << 40))
        self.refused(3, name, "newer")
        write_head(segment, 16, struct.pack("<Q", 0))
        write_head(segment, 24, struct.pack("<Q", 1 << 40))  # no reader needs it
        self.assert_starts([[0, 0], [0, 1], [0, 2]], torn=False)

    def test_a_segment_of_another_journal(self):
        segments = self.fill(restarts=1)
        first = self.path
        self.path = os.path.join(self.folder, "other")
        others = self.fill(restarts=1)
        shutil.copy(others[1], os.path.join(first, os.path.basename(segments[1])))
        self.refused(3, os.path.basename(segments[1]), "another journal", path=first)

    def test_a_clock_that_is_far_ahead(self):
        """The frames say that the journal was written a month ago."""
        segment = self.fill()[0]
        month = 31 * 24 * 3600 * 1000
        for offset, size in frames(segment):
            with open(segment, "r+b") as f:
                f.seek(offset)
                frame = bytearray(f.read(size))
                made = struct.unpack_from("<q", frame, 32)[0]
                struct.pack_into("<q", frame, 32, made - month)
                struct.pack_into("<I", frame, 60, crc32c(frame[:60] + frame[64:]))
                f.seek(offset)
                f.write(frame)
        self.refused(3, self.path, "--accept-clock", "31 days")
        self.start("--accept-clock").logged(" recovered ")


if __name__ == "__main__":
    unittest.main()
