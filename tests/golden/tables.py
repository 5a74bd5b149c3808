"""Instruction counts that are kept in a file, a table for each compiler.

    {"tolerance": 0.02, "instructions": {"gcc-12.2-x86_64": {"hit: allocate": 57, ...}, ...}, ...}

More instructions than the table has are a failure, beyond the tolerance. Fewer are none: a note says
that the table may be recorded anew. Where the compiler has no table, the test is skipped and says so.
"""

import json
import pathlib
import sys

import callgrind


class Instructions:
    """The table of one compiler, in a file."""

    def __init__(self, path, compiler):
        self.path, self.compiler = pathlib.Path(path), compiler
        self.file = json.loads(self.path.read_text())
        self._tables = self.file["instructions"]
        self._fewer = []

    def require(self):
        """Skips the test if the compiler has no table."""
        if self.compiler not in self._tables:
            callgrind.skip(f"no table for {self.compiler}: run ./dev golden")

    def changes(self, what, counted):
        """What is wrong with the number of instructions that `what` takes, as lines."""
        if self.compiler not in self._tables:
            return []
        kept, tolerance = self._tables[self.compiler].get(what), self.file["tolerance"]
        if kept is None:
            return [f"{what}: the table of {self.compiler} in {self.path.name} does not have it"]
        line = f"instructions: {counted:,}, and {self.path.name} says {kept:,}"
        if counted < kept * (1 - tolerance):
            self._fewer.append(f"{what}: fewer {line}")
        return [f"{what}: more {line}"] if counted > kept * (1 + tolerance) else []

    def keep(self, counts, replace=True):
        """Makes these the compiler's table, or adds them to it, and leaves the other tables alone."""
        table = {} if replace else self._tables.get(self.compiler, {})
        whole = {what: round(count) for what, count in counts.items()}
        self._tables[self.compiler] = {**table, **whole}

    def write(self):
        """Each count stands in a line of its own."""
        parts = [f'  {json.dumps(key)}: {_text(value, 1, 3 if key == "instructions" else 2)}'
                 for key, value in self.file.items()]
        self.path.write_text("{\n" + ",\n".join(parts) + "\n}\n")

    def end(self, wrong):
        """Says what is wrong, and ends the test."""
        for line in wrong:
            print(f"WRONG: {line}")
        for line in self._fewer:
            print(f"NOTE: {line}")
        if wrong or self._fewer:
            print("If that is meant: ./dev golden records the tables anew, and ./dev docs the pages.")
        if wrong:
            sys.exit(1)
        self.require()


def _text(value, depth, deepest):
    """JSON in which what is as deep as `deepest` stands in one line."""
    if depth == deepest or not isinstance(value, dict):
        return json.dumps(value)
    indent = "  " * depth
    lines = [f"{indent}  {json.dumps(key)}: {_text(one, depth + 1, deepest)}"
             for key, one in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
