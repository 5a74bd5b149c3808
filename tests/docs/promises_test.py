"""The pages name no subcommand, option, policy or setting that is refused.

promises_test.py COMMAND    the built `cistern`"""

import functools
import pathlib
import re
import subprocess
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
COMMAND = pathlib.Path(sys.argv.pop(1)).resolve()
PAGES = [page for page in [*sorted((TOP / "docs").glob("*.md")), TOP / "README.md", TOP / "CONTRIBUTING.md"]
         if page.name != "decisions.md"]  # which has what was tried, and is gone
CALL = re.compile(r"(?:^|[(&|] ?|/bin/)cistern ([a-z]+)((?: [^\s`|#;&>)]+)*)", re.M)
DEV = re.compile(r"\./dev ([a-z-]+)((?: --[a-z-]+)*)")
TORCH = re.compile(r"python -m cistern\.torch((?: --[a-z-]+(?: [\w.]+)?)+)")
CONF = re.compile(r"(?:--conf[ =]|CISTERN_CONF=)[\"']?([a-z_0-9]+:[\w.:,-]*\w)")
POLICIES = re.compile(r"--policy[ =]([a-z,-]+)")


@functools.cache
def says(*arguments):
    """What the command prints, and whether it took the arguments."""
    ran = subprocess.run([COMMAND, *arguments], capture_output=True, text=True)
    return ran.returncode == 0, ran.stdout + ran.stderr


def code():
    """(page, text) of the code of all pages; a line that goes on is one."""
    for page in PAGES:
        text = page.read_text()
        for block in re.findall(r"^```(?:sh)?\n(.*?)^```$", text, re.M | re.S):
            yield page.name, block.replace("\\\n", " ")
        for span in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)):
            yield page.name, span


def found(pattern):
    return [(page, match) for page, text in code() for match in pattern.findall(text)]


def own_options(arguments):
    """The options before the program that `cistern run` starts."""
    return re.findall(r"(?:^| )(--[a-z][a-z-]*|-[a-z])\b", arguments.partition(" -- ")[0])


def policy_words():
    """Words in code font in the sentences of docs/replay.md that name a policy."""
    page = re.sub(r"^```.*?^```$|^\|.*?$", "", (TOP / "docs/replay.md").read_text(), flags=re.M | re.S)
    for sentence in re.split(r"[.:](?:\s|$)|\n\n", page):
        if re.search(r"\bpolic(?:y|ies)\b|`torch-", sentence):
            yield from ((sentence, word) for word in re.findall(r"`([a-z][a-z-]*)`", sentence))


class Promises(unittest.TestCase):
    def test_each_option_of_a_line_is_one_of_its_subcommand(self):
        calls = found(CALL)
        self.assertGreater(len(calls), 100)
        for page, (name, arguments) in calls:
            taken, help_text = says(name, "--help")
            with self.subTest(page=page, line=f"cistern {name}{arguments}"):
                self.assertTrue(taken)
                for option in own_options(arguments):
                    self.assertRegex(help_text, rf"(?m)^ +(?:-\w,)?{option}\b")

    def test_each_line_of_dev_is_one_of_its_help(self):
        ran = subprocess.run([TOP / "dev", "help"], capture_output=True, text=True, check=True)
        for page, (name, options) in found(DEV):
            with self.subTest(page=page, line=f"./dev {name}{options}"):
                self.assertRegex(ran.stdout, rf"(?m)^\./dev {name}\b")
                for option in options.split():
                    self.assertIn(option, ran.stdout)

    def test_each_option_before_a_script_of_pytorch_is_taken(self):
        source = (TOP / "interop/python/cistern/torch/__main__.py").read_text()
        for page, options in found(TORCH):
            for option in re.findall(r"--[a-z-]+", options):
                self.assertIn(f'add_argument("{option}"', source, page)

    def test_each_policy_is_one_that_replay_takes(self):
        help_text = says("replay", "--help")[1]
        listed = help_text.partition("\n  --policy")[2].partition("\n  -")[0]
        policies = re.findall(r"^ {20,}([a-z-]+): ", listed, re.M)
        named = [(page, word) for page, words in found(POLICIES) for word in words.split(",")]
        self.assertGreater(len(named), 20)
        for where, word in named + [*policy_words()]:
            with self.subTest(where=where):
                self.assertIn(word, policies)

    def test_each_setting_is_taken(self):
        settings = [each for each in found(CONF) if each[1] != "name:value"]
        self.assertGreater(len(settings), 10)
        for page, conf in settings:
            with self.subTest(page=page, conf=conf):
                taken, message = says("replay", "--generate", "train:1", "--conf", conf)
                self.assertTrue(taken, message)


if __name__ == "__main__":
    unittest.main()
