"""NCCL registers memory of Cistern's, and its pages move: collectives.py has the cases."""

import importlib.util
from pathlib import Path

import pytest
import torch

spec = importlib.util.spec_from_file_location("collectives", Path(__file__).with_name("collectives.py"))
collectives = importlib.util.module_from_spec(spec)
spec.loader.exec_module(collectives)

#: What NCCL refuses: group and case, and the begin of the error.
REFUSED = {}


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
@pytest.mark.parametrize("group", collectives.GROUPS)
def test_registered_memory_has_the_right_bytes_while_pages_move(group):
    ranks, errors = collectives.run(group, "cistern")
    for rank, error in zip(ranks, errors):
        assert rank["done"], (rank, error[-2000:])
        for case in rank["cases"]:
            expected = REFUSED.get((group, case["case"]), "right")
            assert case["outcome"].startswith(expected), (rank["rank"], case)
        assert sum(case["moved"] for case in rank["cases"]) > 0
