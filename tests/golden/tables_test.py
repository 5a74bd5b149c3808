"""What a table of instruction counts calls wrong, and what of a file a new table leaves alone."""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import callgrind
import tables

FILE = {"tolerance": 0.02, "paths": {"hit": {"locks": 1, "calls": {"map": 2}}},
        "instructions": {"gcc-12.2-x86_64": {"hit": 100, "miss": 5000},
                         "gcc-13.2-x86_64": {"hit": 90, "miss": 4000}}}


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "paths.json"
        self.path.write_text(json.dumps(FILE))

    def table(self, compiler="gcc-12.2-x86_64"):
        return tables.Instructions(self.path, compiler)

    def ended(self, table, wrong):
        """The exit status, and what the test has printed."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                table.end(wrong)
            except SystemExit as end:
                return end.code, printed.getvalue()
        return 0, printed.getvalue()

    def test_more_instructions_fail(self):
        table = self.table()
        self.assertEqual(table.changes("hit", 102), [])
        wrong = table.changes("hit", 103)
        self.assertEqual(wrong, ["hit: more instructions: 103, and paths.json says 100"])
        status, printed = self.ended(table, wrong)
        self.assertEqual(status, 1)
        self.assertIn("WRONG: hit: more instructions", printed)

    def test_fewer_instructions_pass_with_a_note(self):
        table = self.table()
        self.assertEqual(table.changes("hit", 90), [])
        status, printed = self.ended(table, [])
        self.assertEqual(status, 0)
        self.assertIn("NOTE: hit: fewer instructions: 90, and paths.json says 100", printed)
        self.assertIn("./dev golden", printed)

    def test_each_compiler_has_its_own_counts(self):
        self.assertNotEqual(self.table("gcc-13.2-x86_64").changes("hit", 100), [])

    def test_what_the_table_does_not_have_fails(self):
        self.assertNotEqual(self.table().changes("another", 1), [])

    def test_a_compiler_without_a_table_is_skipped_and_named(self):
        table = self.table("clang-14.0-x86_64")
        self.assertEqual(table.changes("hit", 1_000_000), [])
        status, printed = self.ended(table, [])
        self.assertEqual(status, callgrind.SKIPPED)
        self.assertIn("no table for clang-14.0-x86_64: run ./dev golden", printed)
        self.assertEqual(self.ended(table, ["hit: more locks"])[0], 1)

    def test_a_new_table_leaves_the_others_alone(self):
        table = self.table()
        table.keep({"hit": 80})
        table.write()
        kept = {**FILE, "instructions": {**FILE["instructions"], "gcc-12.2-x86_64": {"hit": 80}}}
        self.assertEqual(json.loads(self.path.read_text()), kept)

    def test_counts_may_be_added_to_a_table(self):
        table = self.table()
        table.keep({"another": 7}, replace=False)
        table.write()
        self.assertEqual(self.table().changes("another", 7), [])
        self.assertEqual(self.table().changes("hit", 100), [])


if __name__ == "__main__":
    unittest.main()
