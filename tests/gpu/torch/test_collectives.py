"""NCCL registers memory of Cistern's, and its pages move: collectives.py has the cases."""

import importlib.util
from pathlib import Path

import pytest
import torch

spec = importlib.util.spec_from_file_location("collectives", Path(__file__).with_name("collectives.py"))
collectives = importlib.util.module_from_spec(spec)
spec.loader.exec_module(collectives)

#: What NCCL or PyTorch may refuse, in PyTorch's own modes too: group and case, and the begin of the error. A case that
#: is refused is the last of its group.
REFUSED = {
    ("symmetric-cuda", "backend"): "RuntimeError: SymmetricMemory does not find allocation backend",
    ("capture-register", "registered in a capture"): "DistBackendError: NCCL error",
}


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
@pytest.mark.parametrize("group", collectives.GROUPS)
def test_registered_memory_has_the_right_bytes_while_pages_move(group):
    ranks, errors = collectives.run(group, "cistern")
    for rank, error in zip(ranks, errors):
        assert rank["cases"], error[-2000:]
        last = rank["cases"][-1]
        refused = last["outcome"].startswith(REFUSED.get((group, last["case"]), "right"))
        for case in rank["cases"][:-1] if refused else rank["cases"]:
            assert case["outcome"] == "right", (rank["rank"], case)
        if last["outcome"] == "right":
            assert rank["done"], (rank, error[-2000:])
            assert sum(case["moved"] for case in rank["cases"]) > 0
