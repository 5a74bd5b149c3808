"""In place of PyTorch and the extension, for every Python whose PYTHONPATH has this folder: `enable()`
does nothing, and what is recorded is in $TRACES, as {"0": a trace's text}."""

import json
import os
from pathlib import Path

import cistern.torch
from cistern.torch import _enable, _native


def enable(mode):
    if os.environ.get("NO_TORCH"):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    _enable._enabled = mode


def trace_begin(folder, name):
    for device, text in json.loads(os.environ.get("TRACES", "{}")).items():
        (Path(folder) / f"{device}.trace").write_text(text)


def peak_reserved(device):
    return (device + 1) << 30


cistern.torch.enable = enable
_native.trace_begin = trace_begin
_native.trace_end = lambda: None
_native.peak_reserved = peak_reserved
