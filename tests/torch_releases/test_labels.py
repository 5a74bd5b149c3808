"""Labels of modules: forward, backward, and where a pass does not come to its end."""

import copy
import pickle
import threading

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import cistern
import cistern.torch
from cistern import _labels

memory = torch.cuda.memory
SEEN = []


def now():
    return b" / ".join(_labels.path()).decode()


class Probe(torch.autograd.Function):
    """Notes the labels of its place, in both passes."""

    @staticmethod
    def forward(ctx, value, name):
        SEEN.append((name, now()))
        ctx.name = name
        return value * 1

    @staticmethod
    def backward(ctx, gradient):
        SEEN.append((ctx.name + "'", now()))
        return gradient, None


class Part(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name, self.failure = name, None
        self.weight = nn.Parameter(torch.ones(4, device="cuda"))

    def forward(self, value):
        if self.failure is not None:
            raise self.failure
        return Probe.apply(value * self.weight, self.name) + 1


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Part("a"), Part("b")])

    def forward(self, value):
        for part in self.parts:
            value = Probe.apply(part(value) + value, "own")
        return {"values": [value]}


def ones():
    return torch.ones(4, device="cuda")


@pytest.fixture
def model():
    SEEN.clear()
    made = Whole()
    with cistern.torch.label_modules(made):
        yield made
    assert _labels.path() == ()


def test_a_module_labels_what_runs_in_it(model):
    with cistern.label("step"):
        model(ones())
    assert SEEN == [("a", "step / Whole / parts.0"), ("own", "step / Whole"), ("b", "step / Whole / parts.1"),
                    ("own", "step / Whole")]


def test_the_backward_pass_has_the_labels_of_the_forward_pass(model):
    with cistern.label("step"):
        loss = Probe.apply(model(ones())["values"][0], "loss").sum()
    SEEN.clear()
    loss.backward()
    assert SEEN == [("loss'", ""), ("own'", "step / Whole / backward"), ("b'", "step / Whole / parts.1 / backward"),
                    ("own'", "step / Whole / backward"), ("a'", "step / Whole / parts.0 / backward")]
    SEEN.clear()
    Probe.apply(ones().requires_grad_(), "after").sum().backward()
    assert SEEN[-1] == ("after'", "")


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_is_computed_again_has_labels_too(model, reentrant):
    value = checkpoint(lambda x: model(x)["values"][0], ones().requires_grad_(), use_reentrant=reentrant)
    SEEN.clear()
    value.sum().backward()
    assert [where.split(" / ")[-2:] for name, where in SEEN if name == "a'"] == [["parts.0", "backward"]]
    assert any(name == "a" and where.endswith("Whole / parts.0") for name, where in SEEN)


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_no_label_behind(model, failure):
    model.parts[1].failure = failure()
    with pytest.raises(failure), cistern.label("step"):
        model(ones())
    assert _labels.path() == ()
    with pytest.raises(failure):
        model(ones())
    SEEN.clear()
    model.parts[1].failure = None
    model(ones())
    assert [where for _, where in SEEN] == ["Whole / parts.0", "Whole", "Whole / parts.1", "Whole"]


def test_a_hook_that_fails_before_ours_ends_no_label(model):
    def fail(module, arguments):
        raise ValueError

    with model.parts[0].register_forward_pre_hook(fail, prepend=True), pytest.raises(ValueError):
        model(ones())
    assert _labels.path() == ()


def test_each_thread_has_labels_of_its_own(model):
    with cistern.label("here"):
        thread = threading.Thread(target=model, args=(ones(),))
        thread.start()
        thread.join()
    assert SEEN[0] == ("a", "Whole / parts.0")


def test_a_module_is_labelled_once_until_its_labels_are_removed(model):
    again = cistern.torch.label_modules(model)
    model(ones())
    assert SEEN[0] == ("a", "Whole / parts.0")
    again.remove()
    model.parts.append(Part("c"))
    with cistern.torch.label_modules(model, "named"):
        SEEN.clear()
        model(ones())
    assert SEEN[-2] == ("c", "Whole / parts.2")
    plain = Whole()
    labels = cistern.torch.label_modules(plain, "named")
    SEEN.clear()
    plain(ones())
    labels.remove()
    labels.remove()
    plain(ones())
    assert SEEN[0] == ("a", "named / parts.0") and SEEN[4] == ("a", "")


def test_a_labelled_model_can_be_copied_and_pickled(model):
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        SEEN.clear()
        other(ones())
        assert SEEN[0] == ("a", "Whole / parts.0")


def test_labels_break_no_compiled_graph():
    plain = nn.Sequential(nn.Identity(), nn.Identity())
    cistern.torch.label_modules(plain, "plain")
    compiled = torch.compile(plain, backend="eager", fullgraph=True)
    cistern.torch.label_modules(compiled, "compiled")
    began, push = [], _labels.push
    _labels.push = lambda name, owner=0: began.append(name) or push(name, owner)
    try:
        compiled(torch.ones(4))
    finally:
        _labels.push = push
    assert began == [b"compiled"]


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="model must be a torch.nn.Module, not int"):
        cistern.torch.label_modules(3)
    with pytest.raises(TypeError, match="name must be a str, not int"):
        cistern.torch.label_modules(nn.Identity(), 3)


@pytest.mark.since(10)
def test_events_of_the_history_have_the_label_as_metadata(model):
    memory._record_memory_history(max_entries=1000)
    try:
        with cistern.label("step"):
            held = ones()
            memory._set_memory_metadata("the program's own")
            other = ones()
            memory._set_memory_metadata("")
        events = memory._snapshot()["device_traces"][0]
    finally:
        memory._record_memory_history(enabled=None)
    told = {e["addr"]: e["user_metadata"] for e in events if e["action"] == "alloc"}
    assert told[held.data_ptr()] == "step" and told[other.data_ptr()] == "the program's own"
