"""Stream-ordered pools of a program on a fake driver, as it is and under `cistern run`.

preload_pools_test.py COMMAND LIBRARY FOLDER_OF_THE_DRIVER FOLDER_OF_PROGRAMS [unittest arguments]"""

import os
import sys
import unittest

import alike
import runs


class Pools(alike.Pools, unittest.TestCase):
    program, attributes = "pool_program", "attribute_program"
    options_of_attributes = ([], ["--strict"], ["--trace", os.devnull], ["--conf", "backing:segments"])


if __name__ == "__main__":
    runs.BENCH = runs.Bench(*sys.argv[1:5])
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
