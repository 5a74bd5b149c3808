"""The programs of the pages that use PyTorch run as they stand there, with a model, batches and the like."""

import re
import sys
from pathlib import Path

import pytest
from conftest import run_alone

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))

import blocks

BLOCKS = [block for block in blocks.blocks() if blocks.runs_somewhere(block) == blocks.PYTHON_TESTS
          and "cupy" not in block.text and "numba" not in block.text
          and ("cistern.torch" in block.text or block.page == "docs/pytorch.md")]
#: What the pages leave to the program. The fake runtime has no cuBLAS.
YOURS = """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(64))

    def forward(self, batch):
        return (batch * self.weight).sum()

model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())
batches = loader = [torch.zeros(8, 64, device="cuda") for _ in range(2)]
metric, total, step = abs, 0, 1
evaluate = lambda model: model(batches[0])
"""


@pytest.mark.parametrize("block", BLOCKS, ids=[f"{block.page}-{n}" for n, block in enumerate(BLOCKS)])
def test_a_program_of_a_page_runs(block):
    begin, enabled, rest = "", "cistern.torch.enable('native')\n", block.text
    if "enable(" in block.text:
        begin, enabled, rest = re.split(r"^(.*\bcistern\.torch\.enable\(.*\n)", block.text, maxsplit=1, flags=re.M)
    elif "MemPool()" in block.text:  # of PyTorch's own allocator
        enabled = ""
    run_alone((begin + enabled + YOURS + rest).replace("64GiB", "1GiB"))  # few hosts have so much to lend


def test_each_page_has_one():
    assert {block.page for block in BLOCKS} >= {"README.md", "docs/overflow.md", "docs/pytorch.md", "docs/sleep.md"}
