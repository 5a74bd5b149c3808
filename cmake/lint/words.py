"""The project speaks of itself, not of how or where it was worked on, and leaves nothing undone."""

import re

import sources

WORDS = [
    (r"\b(?:TODO|FIXME|XXX|HACK)\b", "an unfinished place"),
    (r"(?<![\w.])/(?:work|workspace|home|root)/\w", "a path of one machine"),
    (r"\b(?:issue|ticket|task)s? #?\d+", "a reference to work planning"),
]
SELF = {"cmake/lint/words.py", "tests/lint/lint_test.py"}
TEXT = sources.CODE | {".md", ".txt", ".cmake", ".py", ".json", ".yml", ".sh", ""}


def findings(top):
    found = []
    for path in sources.files(top, TEXT):
        if str(path) in SELF:
            continue
        for number, text in sources.lines(top, path):
            for pattern, what in WORDS:
                if re.search(pattern, text):
                    found.append(f"{path}:{number}: {what}: {text.strip()[:60]}")
    return found


if __name__ == "__main__":
    sources.report(findings(sources.root()))
