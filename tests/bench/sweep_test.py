"""bench/sweep.py says of each setting what `cistern replay` says of it, and where the first one loses.

sweep_test.py PROGRAM"""

import pathlib
import subprocess
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "bench"))

import sweep


def row(efficiency, ms=1.0, calls=(3, 1)):
    return {"efficiency": efficiency, "modelled_device_ms": ms, "calls_by_round": list(calls)}


FOUND = {"a": {"gpt": row(0.9), "train:1": row(0.5, 2.0), "train:2": row(0.7, 4.0)},
         "b": {"gpt": row(0.8), "train:1": row(0.504), "train:2": row(None)},
         "c": {"gpt": row(0.91), "train:1": row(0.6), "train:2": row(0.7)}}


def cells(text, first):
    line = next(line for line in text.splitlines() if line.startswith(f"| {first} "))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


class Tables(unittest.TestCase):
    def test_programs_of_a_kind_are_one_row_with_their_mean_and_their_worst(self):
        text = sweep.efficiencies(FOUND)
        self.assertEqual(cells(text, "gpt"), ["0.900", "0.800", "0.910"])
        self.assertEqual(cells(text, "train x2"), ["0.600 (0.500)", "0.252 (0.000)", "0.650 (0.600)"])
        self.assertEqual(cells(text, "worst"), ["0.500", "0.000", "0.600"])
        text = sweep.milliseconds(FOUND)
        self.assertEqual(cells(text, "train x2")[0], "3.0")
        self.assertEqual(cells(text, "sum of all")[0], "7")
        self.assertEqual(cells(sweep.rounds_of(FOUND), "train")[0], "6 2")

    def test_losses_are_against_the_best_of_the_others(self):
        (first, second) = sweep.losses(FOUND, "a", 2)
        self.assertEqual(first[1:], ("train:1", 0.5, "c", 0.6))
        self.assertEqual(second[1:], ("gpt", 0.9, "c", 0.91))
        text = sweep.counted(FOUND, "a")
        self.assertEqual(cells(text, "b"), ["1", "0", "0.004", "2"])
        self.assertEqual(cells(text, "c"), ["2", "2", "0.100", "0"])

    def test_a_setting_is_a_policy_or_options_and_may_have_a_name(self):
        self.assertEqual(sweep.Setting("torch-expandable").arguments, ["--policy", "torch-expandable"])
        named = sweep.Setting("e=recycle:eager,page_size:16MiB")
        self.assertEqual((named.name, named.arguments), ("e", ["--conf", "recycle:eager,page_size:16MiB"]))
        self.assertEqual(sweep.Setting("default").arguments, [])


class Program(unittest.TestCase):
    def test_a_sweep_is_what_replay_says(self):
        trace = str(TOP / "bench/traces/streams_prefetch.trace.gz")
        settings = [sweep.Setting("default"), sweep.Setting("p=torch-expandable")]
        found = sweep.measure(PROGRAM, settings, [[trace], ["--generate", "serve:1-2"]], 10, 2, 2)
        self.assertEqual(list(found), ["default", "p"])
        self.assertEqual(list(found["p"]), ["streams_prefetch", "serve:1", "serve:2"])
        self.assertAlmostEqual(found["p"]["streams_prefetch"]["efficiency"], 0.937, delta=0.001)
        self.assertEqual(len(found["default"]["serve:1"]["calls_by_round"]), 2)

    def test_a_setting_that_is_refused_ends_the_sweep_with_its_reason(self):
        with self.assertRaisesRegex(SystemExit, "recycles"):
            sweep.measure(PROGRAM, [sweep.Setting("recycles:off")], [["--generate", "serve:1"]], 0, 1, 1)

    def test_policies_are_those_of_the_program(self):
        said = subprocess.run([PROGRAM, "replay", "--generate", "serve:1", "--policy", "none"],
                              capture_output=True, text=True).stderr
        for policy in sweep.POLICIES:
            self.assertIn(policy, said)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
