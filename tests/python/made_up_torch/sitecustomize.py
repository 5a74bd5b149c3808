"""In place of PyTorch and the extension, for every Python whose PYTHONPATH has this folder: `enable()`
does nothing. What is recorded is in $TRACES, as {"0": a trace's text}, and a line says that it is recorded.
The use of GPUs is in $USED, as {"0": the fields of Usage}. A page has the names of the traces, and of those in
folders. $NO_PAGE says why there is none, and $NO_NATIVE why there is no native mode."""

import json
import os
from pathlib import Path

import cistern.torch
from cistern.torch import _enable, _native, _recording, _report


def enable(mode):
    if os.environ.get("NO_TORCH"):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    if mode == "native" and os.environ.get("NO_NATIVE"):
        raise RuntimeError("cistern.torch: " + os.environ["NO_NATIVE"])
    _enable._enabled = mode


def record_begin(folder, name, history):
    _report.say(f"made up: {'a history' if history else 'a trace'} is recorded")
    for device, text in json.loads(os.environ.get("TRACES", "{}")).items():
        (Path(folder) / f"{device}.trace").write_text(text)


def report(source, out):
    if os.environ.get("NO_PAGE"):
        raise cistern.ReportError(os.environ["NO_PAGE"])
    traces = source.glob("*") if source.is_dir() else [source]
    Path(out).write_text(" ".join(sorted(each.name for each in traces)))


def usage():
    return {int(device): _native.Usage(*fields) for device, fields in json.loads(os.environ.get("USED", "{}")).items()}


cistern.torch.enable = enable
_native.record_begin = record_begin
_native.record_end = lambda history: os.environ.get("NOT_WHOLE")
_native.usage = usage
_recording.report = report
