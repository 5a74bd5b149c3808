"""The programs in the pages run as they stand there, but for those that take PyTorch and a GPU."""

import re

import pytest
from conftest import TOP

PAGES = ["README.md", "docs/python.md", "interop/python/README.md"]
BLOCKS = [(page, block) for page in PAGES
          for block in re.findall(r"^```python\n(.*?)^```$", (TOP / page).read_text(), re.M | re.S)
          if "cistern.torch" not in block]


@pytest.mark.parametrize("page, block", BLOCKS, ids=[f"{page}-{n}" for n, (page, _) in enumerate(BLOCKS)])
def test_a_program_of_a_page_runs(run, page, block, monkeypatch, tmp_path):
    if "cistern.torch" in block:
        pytest.importorskip("torch", reason="the block is for PyTorch, which is not here")
    (tmp_path / "bench").symlink_to(TOP / "bench")  # they name the recorded programs so
    monkeypatch.chdir(tmp_path)
    run(block, CISTERN_BACKEND="sim")


def test_each_page_of_the_package_has_one():
    assert {page for page, _ in BLOCKS} >= set(PAGES) - {"README.md"}
