"""Regions that sleep: graphs replay after each wake, training over NCCL goes on, and bytes are what they were."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import cistern.torch

PROGRAMS = Path(__file__).resolve().parents[3] / "bench/pytorch"
MIB = 1 << 20


def ran(name, *arguments):
    done = subprocess.run([sys.executable, str(PROGRAMS / name), *arguments], capture_output=True, text=True,
                          timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_region_gives_its_memory_back_and_has_its_bytes_after_wake():
    numbers = torch.arange(16 * MIB, device="cuda")
    with cistern.torch.region("numbers"):
        slept = numbers.clone()
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0]
    report = cistern.torch.sleep("numbers")
    assert report.saved >= 128 * MIB and report.stayed == 0
    # The driver may take some MiB for the copies.
    assert torch.cuda.mem_get_info()[0] >= before + 112 * MIB
    taken = torch.full((64 * MIB,), -1, device="cuda")
    del taken
    cistern.torch.wake("numbers")
    assert torch.equal(slept, numbers)


def test_captured_graphs_replay_after_each_wake():
    told = ran("sleep.py", "rounds", "--rounds", "30").splitlines()
    assert told[-3].startswith("after 30 rounds: 0 wrong results")


def test_a_memory_saver_restores_a_thousand_tensors():
    assert json.loads(ran("sleep.py", "rates", "--gib", "2", "--rounds", "1"))["wrong"] == 0


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_training_over_nccl_goes_on_after_each_wake():
    lines = [json.loads(line) for line in ran("sleep_sharded.py", "--rounds", "20").splitlines()]
    assert len(lines) == 8
    assert all(line["same"] and line["alone"] for line in lines if "same" in line)
    assert all(not line["wrong"] and not line["refused"] for line in lines if "wrong" in line)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_memory_that_nccl_may_have_registered_does_not_sleep(monkeypatch):
    monkeypatch.setenv("NCCL_GRAPH_REGISTER", "1")
    lines = [json.loads(line) for line in ran("sleep_sharded.py", "--rounds", "3").splitlines()]
    refused = [line["refused"] for line in lines if "refused" in line]
    assert len(refused) == 6 and all("NCCL_GRAPH_REGISTER=0" in reason for reason in refused)
