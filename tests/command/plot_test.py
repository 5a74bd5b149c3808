"""The picture of --plot: XML that a parser takes, and lines that are where the figures say.

plot_test.py PROGRAM"""

import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

TOP = pathlib.Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"
POLICIES = ["cistern", "torch-rules", "torch-expandable", "driver-pool", "direct"]
MIB, GIB = 1 << 20, 1 << 30
UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": GIB}


def corners(d):
    """The corners of a path of StepPath's: M x y, then h and v, both relative."""
    x, y = map(float, re.match(r"M(\S+) ([\d.]+)", d).groups())
    found = [(x, y)]
    for direction, by in re.findall(r"([hv])([-\d.]+)", d):
        x, y = (x + float(by), y) if direction == "h" else (x, y + float(by))
        found.append((x, y))
    return found


class Picture:
    def __init__(self, text):
        self.text = text
        self.root = xml.fromstring(text)
        paths = self.root.findall(f"{SVG}path")
        self.lines = {path.get("data-policy"): corners(path.get("d"))
                      for path in paths if path.get("data-policy")}
        self.areas = [corners(path.get("d")) for path in paths if path.get("class") == "asked"]
        rules = [corners(path.get("d"))[0][1] for path in paths if "H" in path.get("d")]
        *ticks, unit = [text.text for text in self.of_class("y")]
        self.floor = rules[0]
        tick = float(ticks[-1].replace(",", "")) * UNITS[unit]
        self.bytes_per_pixel = tick / (self.floor - rules[-1])

        self.marks = {mark.get("data-peak"): (float(mark.get("cx")), float(mark.get("cy")))
                      for mark in self.root.findall(f"{SVG}circle")}
        self.caps = [corners(path.get("d"))[0][1] for path in paths if path.get("class") == "cap"]

    def of_class(self, name):
        return [text for text in self.root.findall(f"{SVG}text") if text.get("class") == name]

    def peak(self, curve):
        return (self.floor - min(y for _, y in curve)) * self.bytes_per_pixel


class Plot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.svg = self.folder / "picture.svg"

    def replay(self, trace, *how):
        command = [PROGRAM, "replay", trace, "--device", "sim", "--json", "--plot", self.svg, *how]
        return subprocess.run(command, capture_output=True, text=True)

    def drawn(self, trace, *how):
        """The picture, and the rows of --json."""
        result = self.replay(trace, "--policy", ",".join(POLICIES), *how)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess(self.svg.stat().st_size, 60_000)
        return Picture(self.svg.read_text()), [json.loads(r) for r in result.stdout.splitlines()]

    def trace(self, lines, name="made.trace"):
        path = self.folder / name
        path.write_text("\n".join(lines) + "\n")
        return path

    def assert_true_to(self, picture, rows):
        self.assertEqual(sorted(picture.lines), sorted(POLICIES))
        for row in rows:
            drawn = picture.peak(picture.lines[row["policy"]])
            self.assertAlmostEqual(drawn, row["peak_reserved_bytes"], delta=picture.bytes_per_pixel)
        asked = max(map(picture.peak, picture.areas))
        self.assertAlmostEqual(asked, rows[0]["peak_requested_bytes"], delta=picture.bytes_per_pixel)

    def test_each_policy_has_a_line_whose_peak_is_the_reported_one(self):
        for name in ["unet_buckets", "streams_prefetch"]:
            picture, rows = self.drawn(TOP / f"bench/traces/{name}.trace.gz", "--gpu-lag-us", "1000")
            self.assert_true_to(picture, rows)
            texts = [text.text for text in picture.root.findall(f"{SVG}text")]
            self.assertTrue(any(name in text for text in texts))
            for row in rows:
                figures = f"{100 * row['efficiency']:.1f} % in use"
                self.assertTrue(any(figures in text for text in texts), figures)

    def test_the_peaks_are_marked_where_they_are_with_their_figures(self):
        lines = [f"a {MIB} 0 1000000"]
        for number in range(1, 4):
            size = 300 * MIB if number == 2 else 40 * MIB
            lines += [f"a {size} 0 1000000", f"f {number} 1000000"]
        picture, rows = self.drawn(self.trace(lines))
        self.assertEqual(sorted(picture.marks), sorted([*POLICIES, "asked"]))
        figures = [text.text for text in picture.root.findall(f"{SVG}text") if "peak" in text.get("class")]
        first, last = picture.areas[0][0][0], max(x for x, _ in picture.areas[0])
        for row in rows:
            x, y = picture.marks[row["policy"]]
            peak = min(y for _, y in picture.lines[row["policy"]])
            self.assertAlmostEqual(y, peak, delta=0.2)
            self.assertIn(f"{row['peak_reserved_bytes'] / MIB:.2f} MiB", figures)
        x, y = picture.marks["asked"]
        self.assertAlmostEqual((x - first) / (last - first), 4 / 7, delta=0.01)
        self.assertIn("301.00 MiB", figures)
        places = [(float(text.get("x")), float(text.get("y"))) for text in picture.root.findall(f"{SVG}text")
                  if "peak" in text.get("class")]
        for number, (x, y) in enumerate(places):
            for other_x, other_y in places[:number]:
                self.assertTrue(abs(x - other_x) > 60 or abs(y - other_y) > 12.8, places)

    def test_a_cap_is_a_line_across(self):
        trace = self.trace([f"a {100 * MIB} 0 10", "f 0 10"])
        for args in [["--capacity", "200MiB"], ["--capacity", "60MiB"]]:
            self.replay(trace, *args)
            picture = Picture(self.svg.read_text())
            (cap,) = picture.caps
            drawn = (picture.floor - cap) * picture.bytes_per_pixel
            self.assertAlmostEqual(drawn, int(args[1][:-3]) * MIB, delta=picture.bytes_per_pixel)
            texts = [text.text for text in picture.of_class("peak")]
            self.assertEqual(texts, [f"cap {args[1][:-3]}.00 MiB"])
        self.replay(trace)
        self.assertEqual(Picture(self.svg.read_text()).caps, [])

    def test_a_policy_that_cannot_be_held_to_the_cap_has_no_line(self):
        result = self.replay(self.trace([f"a {MIB} 0 10"]), "--policy", "cistern,driver-pool",
                             "--capacity", "1GiB")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(list(Picture(self.svg.read_text()).lines), ["cistern"])

    def test_a_peak_of_one_event_among_many_is_drawn(self):
        lines = ["a 1048576 0 1000"]
        for number in range(1, 20_001):
            size = GIB if number == 7_777 else 4096
            lines += [f"a {size} 0 10", f"f {number} 0"]
        picture, rows = self.drawn(self.trace(lines))
        self.assertEqual(rows[0]["peak_requested_bytes"], MIB + GIB)
        self.assert_true_to(picture, rows)

    def test_memory_that_never_rests_is_drawn_within_the_size(self):
        random.seed(1)
        lines, live = [], []
        for number in range(10_000):
            lines.append(f"a {random.randrange(1, 600) * MIB} {number % 3} {random.randrange(50)}")
            live.append(number)
            while len(live) > random.randrange(1, 9):
                lines.append(f"f {live.pop(random.randrange(len(live)))} 3")
        self.assert_true_to(*self.drawn(self.trace(lines)))

    def test_all_rounds_are_drawn(self):
        trace = self.trace([f"a {64 * MIB} 0 0", f"f 0 1000000", f"a {32 * MIB} 0 1000000"])
        picture, rows = self.drawn(trace, "--repeat", "3")
        self.assert_true_to(picture, rows)
        heights = [y for _, y in picture.areas[0]]
        self.assertEqual(heights.count(min(heights)), 2 * 3)  # both ends of the top, in each round

    def test_without_time_each_event_is_as_long(self):
        trace = self.trace([f"a {8 * MIB} 0 0", f"a {8 * MIB} 0 0", "f 0 0", "f 1 0"])
        picture, rows = self.drawn(trace)
        self.assert_true_to(picture, rows)
        self.assertIn("events into the program", [t.text for t in picture.of_class("note")])
        across = sorted({x for x, _ in picture.areas[0]})
        self.assertAlmostEqual(across[2] - across[1], across[3] - across[2], delta=1.5)

    def test_a_program_that_asks_for_next_to_nothing_is_a_picture(self):
        for lines in [["a 0 0 0", "f 0 0"], ["a 1 0 5"]]:
            result = self.replay(self.trace(lines))
            self.assertEqual(result.returncode, 0, result.stderr)
            Picture(self.svg.read_text())

    def test_a_name_is_text_whatever_it_says(self):
        name = "<b a='1'> &amp; \"x\" ]]> \uffff \x01"
        result = self.replay(self.trace(["a 1 0 5"], name + ".trace"))
        self.assertEqual(result.returncode, 0, result.stderr)
        title = Picture(self.svg.read_text()).root.find(f"{SVG}title").text
        self.assertTrue(title.startswith("<b a='1'> &amp; \"x\" ]]> \ufffd \\x01: "), title)

    def test_nothing_is_fetched_or_run_and_it_scales(self):
        picture, _ = self.drawn(TOP / "bench/traces/streams_prefetch.trace.gz")
        for word in ["<script", "href", "url(", "@import", "onload"]:
            self.assertNotIn(word, picture.text)
        self.assertIn("prefers-color-scheme: dark", picture.text)
        _, _, width, height = map(float, picture.root.get("viewBox").split())
        self.assertGreater(width, height)
        self.assertTrue(picture.root.find(f"{SVG}desc").text)

    def test_a_disk_that_is_full_is_an_error(self):
        self.svg.symlink_to("/dev/full")
        result = self.replay(self.trace(["a 1 0 5"]))
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"cistern: --plot {self.svg}: cannot be written: No space left", result.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
