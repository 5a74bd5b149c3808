"""The Python programs of docs/cookbook.md run as they stand there."""

import re

import pytest
from conftest import TOP

PAGE = (TOP / "docs/cookbook.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.mark.parametrize("library", ["cupy", "numba"])
def test_the_program_of_the_page_runs(run, library):
    (program,) = [text for text in PROGRAMS if f"cistern.{library}" in text]
    printed = run(program, needs=library)
    assert printed.startswith("<cistern.Allocator on device 0: ") and ": 0 bytes" not in printed
