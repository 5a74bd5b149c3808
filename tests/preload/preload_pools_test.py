"""Stream-ordered pools of a program on a fake driver, as it is and under `cistern run`.

preload_pools_test.py COMMAND LIBRARY FOLDER_OF_THE_DRIVER FOLDER_OF_PROGRAMS [unittest arguments]"""

import os
import sys
import unittest

import runs


class Pools(unittest.TestCase):
    """Cistern stands in for the default pool of a device, as long as that is current and has no properties."""

    def test_the_pool_that_the_program_has_chosen_is_asked(self):
        for case in ("current", "access"):
            with self.subTest(case=case):
                ended = BENCH.alone("pool_program", case)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                run = BENCH.run("pool_program", case)
                self.assertEqual(run.status, 0, run.err)

    def test_the_default_pool_says_of_itself_what_the_driver_would(self):
        for case in ("used", "reserved", "other_memory", "peaks", "trims", "wrong_values", "settings", "other_device",
                     "of_two", "child"):
            for options in ([], ["--strict"], ["--trace", os.devnull], ["--conf", "backing:segments"]):
                with self.subTest(case=case, options=options):
                    ended = BENCH.alone("attribute_program", case)
                    self.assertEqual(ended.returncode, 0, ended.stderr)
                    run = BENCH.run("attribute_program", case, options=options)
                    self.assertEqual(run.status, 0, run.err)


if __name__ == "__main__":
    BENCH = runs.Bench(*sys.argv[1:5])
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
