"""The figures in README.md and docs/ are those that a run had, and can be taken again."""

import pathlib
import re
import subprocess
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "bench"))

import figures


def rows(text):
    """The cells of each row of Markdown's tables, without bold."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]


def number(text):
    return float(text.replace(",", ""))


class Speeds(unittest.TestCase):
    CASES = {"512 B": "pair/512B", "24 MiB": "pair/24MiB", "churn of 10,000": "churn/10000",
             "16 threads on one stream": "threads_one_stream/16"}
    PEERS = ["torch", "cudaMallocAsync", "cub", "cudaMalloc"]  # in the README's order

    def runs(self):
        """The documented runs of bench_hot_path on a GPU: a case's figures by allocator."""
        page = (TOP / "docs/benchmarks.md").read_text()
        found = []
        for part in re.findall(r"^\| ns per step \| cistern:cuda \|(?:.*\n)(?:\|.*\n)+", page, re.M):
            head, _, *body = rows(part)
            run = {row[0]: dict(zip(head[1:], row[1:])) for row in body}
            if all(case in run for case in self.CASES.values()):
                found.append(run)
        return found

    def test_the_readme_has_the_run_that_is_worse_for_cistern(self):
        runs = self.runs()
        self.assertGreaterEqual(len(runs), 2)
        worse = max(runs, key=lambda run: sum(number(run[case]["cistern:cuda"])
                                              for case in self.CASES.values()))
        shown = {row[0]: row[1:] for row in rows((TOP / "README.md").read_text())}
        for title, case in self.CASES.items():
            own, *peers = shown[title]
            self.assertEqual(number(own), round(number(worse[case]["cistern:cuda"])), title)
            for run in runs:
                self.assertGreaterEqual(number(own) + 0.5, number(run[case]["cistern:cuda"]), title)
            for peer, figure in zip(self.PEERS, peers):
                if figure:
                    self.assertEqual(number(figure), number(worse[case][peer]), (title, peer))


class Paths(unittest.TestCase):
    def test_the_page_has_what_the_test_keeps(self):
        shown = rows((TOP / "docs/benchmarks.md").read_text())
        for row in rows(figures.paths(None)):
            self.assertIn(row, shown, "./dev docs writes it anew")


class Leaving(unittest.TestCase):
    def test_the_page_names_each_folder_that_is_kept_in_the_users_cache(self):
        page = (TOP / "docs/leaving.md").read_text()
        sources = subprocess.run(["git", "-C", TOP, "grep", "-h", "-A4", "XDG_CACHE_HOME", "--", "*.py", "dev", ":!tests/docs",
                                  ":!tests/python"], capture_output=True, text=True, check=True).stdout
        kept = set(re.findall(r'"(cistern[\w-]*)"', sources))
        self.assertEqual(kept, {"cistern", "cistern-wheel", "cistern-torch-test"})
        for folder in kept:
            self.assertIn(f"`~/.cache/{folder}`", page)
            self.assertIn(f"`$XDG_CACHE_HOME/{folder}`", page)
            self.assertIn(f"`rm -r ~/.cache/{folder}`", page)


class Demo(unittest.TestCase):
    def test_the_demo_and_the_readme_replay_with_the_same_lag(self):
        demo = (TOP / "dev").read_text().split("\ndemo() {")[1].split("\n}\n")[0]
        run = re.findall(r'^  "\$command" replay .*', demo, re.M)
        self.assertEqual(len(run), 1)
        self.assertIn(" ".join(figures.LAG), run[0])
        self.assertIn("10 ms behind the host", " ".join((TOP / "README.md").read_text().split()))
        self.assertIn(" ".join(figures.LAG), (TOP / "README.md").read_text())


class Marks(unittest.TestCase):
    def test_every_table_of_the_script_stands_in_one_page_and_no_other_is_asked_for(self):
        names = [name for page in figures.pages()
                 for name in re.findall(r"<!-- figures: (\S+) -->\n(?:(?!<!-- ).*\n)*<!-- end -->",
                                        page.read_text())]
        self.assertEqual(sorted(names), sorted(figures.TABLES))

    def test_a_table_is_replaced_where_it_stands(self):
        text = "a\n<!-- figures: x -->\n\nold\n\n<!-- end -->\nb\n"
        new = figures.rewritten(text, lambda name: name * 2)
        self.assertEqual(new, "a\n<!-- figures: x -->\n\nxx\n\n<!-- end -->\nb\n")
        self.assertEqual(figures.rewritten(new, lambda name: name * 2), new)

    def test_a_trace_behind_a_block_ends_each_round_with_that_block(self):
        text = figures.behind_a_block("# x\na 5 0 1\na 6 3 1\nf 0 2\n", 2)
        kept = figures.KEPT
        self.assertEqual(text.splitlines(),
                         [f"a {kept} 0 0", f"a {kept} 3 0", "a 5 0 1", "a 6 3 1", "f 2 2", "f 3 0",
                          "a 5 0 1", "a 6 3 1", "f 4 2", "f 5 0"])


if __name__ == "__main__":
    unittest.main()
