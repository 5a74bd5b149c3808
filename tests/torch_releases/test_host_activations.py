"""Tensors that autograd saves, in the host's memory. Kernels do nothing here: the bytes are those of copies."""

import ctypes
import gc
import threading

import cistern.torch
import pytest
import torch
from conftest import FOLDER, in_host
from torch.utils.checkpoint import checkpoint

MIB = 1 << 20
ACTIVATIONS = cistern.torch._host_activations


def on_device(device=0):
    return cistern.torch._usage.on_device(device)


def races():
    """What the simulated device has found of copies that nothing orders, since the last call."""
    call = ctypes.CDLL(str(FOLDER / "libcuda.so.1")).fake_races
    call.restype, call.argtypes = ctypes.c_char_p, (ctypes.c_int,)
    return call(0).decode()


class Through(torch.autograd.Function):
    """A copy of its argument, so that it has a node."""

    @staticmethod
    def forward(ctx, tensor):
        return tensor.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Keep(torch.autograd.Function):
    """Saves its arguments. SEEN has what its backward pass got."""

    SEEN = []

    @staticmethod
    def forward(ctx, *tensors):
        ctx.save_for_backward(*tensors)
        return torch.zeros(4, device=tensors[0].device)

    @staticmethod
    def backward(ctx, gradient):
        saved = ctx.saved_tensors
        Keep.SEEN.extend(saved)
        return tuple(torch.zeros_like(each) for each in saved)


@pytest.fixture(autouse=True, params=["beside the work", "in its stream"])
def seen(request, monkeypatch):
    """By either kind of copies."""
    from cistern.torch import _store

    monkeypatch.setattr(_store, "OVERLAPS", request.param == "beside the work")
    Keep.SEEN.clear()
    yield Keep.SEEN
    Keep.SEEN.clear()


def numbers(size, device="cuda", dtype=torch.float32):
    values = torch.arange(size, dtype=torch.int64).mul_(2654435761).to(dtype)
    leaf = torch.empty(0, device=device, dtype=dtype).set_(values.to(device)).requires_grad_()
    return values, Through.apply(leaf)


def test_what_is_saved_lies_in_the_hosts_memory_and_comes_back(seen):
    values, tensor = numbers(4 * MIB)
    with cistern.torch.host_activations("1GiB") as offload:
        kept = Keep.apply(tensor)
        before = on_device()
        del tensor
        assert offload.last_step() == (16 * MIB, 1, 1 << 30)
    assert on_device() <= before - 16 * MIB
    kept.backward(torch.ones(4, device="cuda"))
    assert torch.equal(seen[0].detach().cpu(), values)
    assert seen[0].device == torch.device("cuda:0") and not in_host(seen[0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.complex64, torch.uint8])
def test_type_shape_and_strides_are_kept(dtype):
    values = torch.arange(4 * MIB).to(dtype).view(4, 1024, 1024)
    device = values.cuda().transpose(0, 2)[1:]
    with cistern.torch.host_activations("1GiB") as offload:
        leaf = torch.ones(1, device="cuda", requires_grad=True)
        kept = Keep.apply(device, leaf)
    assert offload.last_step().tensors == 1
    again = kept.grad_fn.saved_tensors[0]
    assert (again.dtype, again.shape, again.stride(), again.storage_offset()) == (
        dtype, device.shape, device.stride(), device.storage_offset())
    whole = torch.empty(0, dtype=dtype, device="cuda").set_(again.untyped_storage())  # no kernel brings it in order
    assert torch.equal(whole.cpu().view(values.shape), values)


def test_a_storage_is_copied_once_and_brought_back_once(seen):
    values, tensor = numbers(6 * MIB)
    with cistern.torch.host_activations("1GiB") as offload:
        parts = tensor.chunk(3)
        kept = Keep.apply(*parts)
        again = Keep.apply(tensor)
        del tensor, parts
        assert offload.last_step()[:2] == (24 * MIB, 1)
        (kept.sum() + again.sum()).backward()
    assert torch.equal(torch.cat([each.detach().cpu() for each in seen if each.numel() == 2 * MIB]), values)
    assert len({each.untyped_storage().data_ptr() for each in seen}) == 1


def test_a_copy_goes_with_its_graph_and_serves_the_next_step():
    host = cistern.default(0).stats_dict
    for _ in range(3):
        _, tensor = numbers(4 * MIB)
        with cistern.torch.host_activations("1GiB"):
            kept = Keep.apply(tensor)
            del tensor
            kept.sum().backward()
        del kept
    gc.collect()
    Keep.SEEN.clear()
    assert host()["host_page_allocated_bytes"] == 0


def test_a_graph_that_is_dropped_leaves_nothing():
    gc.collect()
    before = on_device()
    gc.disable()
    try:
        for saves_output in (False, True):
            _, tensor = numbers(4 * MIB)
            with cistern.torch.host_activations("8MiB"):  # some stay, some go
                result = tensor.exp() if saves_output else Keep.apply(tensor)
                result = (result * result).exp()
            del tensor, result
        assert on_device() == before
    finally:
        gc.enable()


def test_the_first_that_are_saved_go_until_the_bytes_are_reached():
    made = [numbers(MIB)[1] for _ in range(5)]
    with cistern.torch.host_activations(7 * MIB) as offload:
        kept = [Keep.apply(each) for each in made]
    assert offload.last_step()[:2] == (8 * MIB, 2)
    moved = [type(each.grad_fn._raw_saved_tensors[0].data).__name__ if hasattr(
        each.grad_fn._raw_saved_tensors[0], "data") else None for each in kept]
    assert moved in (["Moved", "Moved", "tuple", "tuple", "tuple"], [None] * 5)
    with offload:
        assert offload.last_step()[:2] == (0, 0)


def test_parameters_and_small_tensors_and_parts_of_large_ones_stay():
    weight = torch.nn.Parameter(torch.zeros(1024, 1024, device="cuda"))
    frozen = torch.nn.Parameter(torch.zeros(1024, 1024, device="cuda"), requires_grad=False)
    leaf = torch.zeros(MIB, device="cuda", requires_grad=True)
    _, tensor = numbers(8 * MIB)
    with cistern.torch.host_activations("1GiB") as offload:
        Keep.apply(weight, weight.t(), frozen, frozen.view(-1), leaf, leaf[5:], tensor[:1000], tensor[:MIB],
                   torch.zeros(1000, device="cuda"), torch.zeros(4 * MIB))
    assert offload.last_step()[:2] == (0, 0)


def test_a_tensor_that_lies_in_host_memory_stays():
    with cistern.torch.host_memory():
        there = torch.zeros(MIB, device="cuda")
    with cistern.torch.host_activations("1GiB") as offload:
        kept = Keep.apply(there, torch.zeros(1, device="cuda", requires_grad=True))
    assert offload.last_step()[:2] == (0, 0)
    assert in_host(kept.grad_fn.saved_tensors[0])


@pytest.mark.parametrize("limit", ["1GiB", 0, 1])
def test_a_tensor_that_changed_in_place_is_an_error_as_without(limit):
    for _ in range(2):
        _, tensor = numbers(MIB)
        small = Through.apply(torch.zeros(4, device="cuda", requires_grad=True))
        with cistern.torch.host_activations(limit):
            kept = Keep.apply(tensor, small)
            with torch.no_grad():
                tensor.add_(1)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                kept.sum().backward()


def test_tensors_that_change_between_two_saves_have_two_copies():
    _, tensor = numbers(MIB)
    with cistern.torch.host_activations("1GiB") as offload:
        Keep.apply(tensor)
        with torch.no_grad():
            tensor.add_(1)
        Keep.apply(tensor)
    assert offload.last_step().tensors == 2


def test_a_graph_that_is_kept_gives_its_tensors_again(seen):
    values, tensor = numbers(4 * MIB)
    with cistern.torch.host_activations("1GiB"):
        kept = Keep.apply(tensor).sum()
        del tensor
        for _ in range(3):
            kept.backward(retain_graph=True)
    assert len(seen) == 3 and all(torch.equal(each.detach().cpu(), values) for each in seen)
    assert all(each.requires_grad for each in seen)


def test_a_gradient_of_a_gradient_reaches_the_leaf():
    leaf = torch.zeros(MIB, device="cuda", requires_grad=True)
    with cistern.torch.host_activations("1GiB"):
        result = ((leaf * 2).exp() ** 3).sum()
        (gradient,) = torch.autograd.grad(result, leaf, create_graph=True)
        gradient.sum().backward()
    assert leaf.grad is not None


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_inputs_go_and_what_is_computed_again_stays(reentrant, seen):
    values, tensor = numbers(4 * MIB)
    with cistern.torch.host_activations("1GiB") as offload:
        kept = checkpoint(lambda given: Keep.apply(Through.apply(given)), tensor, use_reentrant=reentrant)
        del tensor
        kept.sum().backward()
    assert offload.last_step().tensors == 1
    assert torch.equal(seen[0].detach().cpu(), values)


def test_inner_hooks_come_first():
    _, tensor = numbers(MIB)
    with cistern.torch.host_activations("1GiB") as offload:
        with torch.autograd.graph.saved_tensors_hooks(lambda each: each.detach(), lambda each: each):
            Keep.apply(tensor)
        with torch.autograd.graph.save_on_cpu():
            Keep.apply(tensor)
        assert offload.last_step().tensors == 0
        with offload:  # the same step
            Keep.apply(tensor)
        assert offload.last_step().tensors == 1


def test_each_device_has_its_copies_and_its_budget(seen):
    made = [numbers(MIB, f"cuda:{index}") for index in (0, 1, 0, 1)]
    with cistern.torch.host_activations(MIB) as offload:
        kept = [Keep.apply(tensor) for _, tensor in made]
    assert offload.last_step(0)[:2] == offload.last_step("cuda:1")[:2] == (4 * MIB, 1)
    for each in kept:
        each.sum().backward()
    assert all(torch.equal(each.detach().cpu(), made[0][0]) for each in seen) and len(seen) == 4
    with cistern.torch.host_activations("1GiB", device=1) as offload:
        Keep.apply(made[0][1])
        Keep.apply(made[1][1])
    assert offload.last_step(0).tensors == 0 and offload.last_step(1).tensors == 1


def test_a_capture_has_no_copies():
    _, tensor = numbers(MIB)
    graph = torch.cuda.CUDAGraph()
    with cistern.torch.host_activations("1GiB") as offload:
        with torch.cuda.graph(graph):
            kept = Keep.apply(tensor)
            del kept
    assert offload.last_step().tensors == 0


@pytest.mark.parametrize("copy_back", [True, False])
def test_another_stream_waits_for_the_copy(seen, copy_back, monkeypatch):
    from cistern.torch import _saved

    monkeypatch.setattr(_saved, "COPY_BACK", copy_back)
    races()
    values, tensor = numbers(MIB)
    stream = torch.cuda.Stream()
    with cistern.torch.host_activations("1GiB"):
        kept = Keep.apply(tensor)
        del tensor
        with torch.cuda.stream(stream):
            again = kept.grad_fn.saved_tensors[0]
            assert in_host(again) != copy_back
            read = again.clone()
        del kept, again  # another copy takes its memory
        Keep.apply(Through.apply(torch.zeros(MIB, device="cuda", requires_grad=True)))
    assert races() == "" and torch.equal(read.cpu(), values)


def test_what_is_needed_next_comes_back_ahead_and_may_be_dropped(seen, request, monkeypatch):
    from cistern.torch import _store

    monkeypatch.setattr(_store, "_EVERY", 1)
    made = [numbers(MIB) for _ in range(4)]
    offload = cistern.torch.host_activations("1GiB")
    for ahead in [(0, 0), (12 * MIB, 8 * MIB)]:  # a first step has no figures of one before it
        seen.clear()
        with offload:
            kept = [Keep.apply(tensor) for _, tensor in made]
            store = offload._stores[0]
            for number, there in zip((-1, 2), ahead):
                kept[number].sum().backward()
                assert store.on_the_way == (there if "beside" in request.node.name else 0)
            del kept
            assert store.on_the_way == 0
        assert torch.equal(seen[1].detach().cpu(), made[2][0])


def test_what_comes_back_ahead_makes_room_where_memory_is_short(overflow, request, monkeypatch):
    from cistern.torch import _store

    if "beside" not in request.node.name:
        pytest.skip("nothing comes back ahead in the stream of the work")
    monkeypatch.setattr(_store, "_EVERY", 1)
    monkeypatch.setattr(_store.Store, "let_go", lambda self: 0)
    offload = cistern.torch.host_activations("1GiB")
    made = [numbers(8 * MIB) for _ in range(4)]
    for last in (False, True):
        with offload:
            kept = [Keep.apply(tensor) for _, tensor in made]
            store = offload._stores[0]
            kept[-1].sum().backward()
            if last:
                assert store.on_the_way == 96 * MIB
                overflow(64 * MIB)
                more = [torch.empty(32 * MIB, dtype=torch.uint8, device="cuda") for _ in range(3)]
                assert store.on_the_way < 96 * MIB and not any(map(in_host, more))
                del more
            sum(each.sum() for each in kept[:-1]).backward()
            del kept
    assert all(torch.equal(each.detach().cpu(), made[0][0]) for each in Keep.SEEN)


def test_threads_share_an_object():
    offload, wrong = cistern.torch.host_activations("1GiB"), []

    def work(number):
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(5):
                values = torch.full((MIB,), float(number))
                tensor = Through.apply(values.cuda().requires_grad_())
                with offload:
                    kept = Keep.apply(tensor)
                    del tensor
                found = kept.grad_fn.saved_tensors[0]
                wrong.append(int((found.detach().cpu() != values).sum()))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == [0] * 20


def test_what_was_copied_out_goes_when_the_device_is_short(seen):
    values, tensor = numbers(4 * MIB)
    with cistern.torch.host_activations("1GiB") as offload:
        kept = Keep.apply(tensor)
        del tensor
        total = torch.cuda.mem_get_info()[1]
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 4 * MIB) / total)
        torch.empty(12 * MIB, dtype=torch.uint8, device="cuda").fill_(0)
        torch.cuda.set_per_process_memory_fraction(1.0)
        kept.sum().backward()
    assert torch.equal(seen[0].detach().cpu(), values)


@pytest.mark.parametrize("room, falls", [(-32, 64), (64, 0)])
def test_memory_falls_in_the_forward_pass_where_it_is_short(room, falls, request):
    if "beside" not in request.node.name:
        falls = 64
    before, total = on_device(), torch.cuda.mem_get_info()[1]
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (320 + room) * MIB) / total)
    leaf = torch.zeros(4 * MIB, device="cuda", requires_grad=True)
    with cistern.torch.host_activations("64MiB") as offload:
        kept = [Keep.apply(Through.apply(leaf)) for _ in range(19)]
        assert (on_device() - before) // MIB == 320 - falls
        assert offload.last_step()[:2] == (64 * MIB, 4)


class Reads(Keep):
    """Its backward pass reads what it gets, by a copy."""

    @staticmethod
    def backward(ctx, gradient):
        return ctx.saved_tensors[0].clone()


@pytest.mark.parametrize("copy_back", [True, False])
@pytest.mark.parametrize("own_stream", [True, False])
def test_the_race_detector_finds_nothing(copy_back, own_stream, monkeypatch):
    from cistern.torch import _saved

    monkeypatch.setattr(_saved, "COPY_BACK", copy_back)
    races()
    offload, here = cistern.torch.host_activations("10MiB"), torch.cuda.current_stream()
    there = torch.cuda.Stream() if own_stream else here
    leaf = torch.zeros(MIB, device="cuda", requires_grad=True)
    for step in range(4):
        with offload:
            there.wait_stream(here)
            with torch.cuda.stream(there):
                made = []
                for _ in range(5):
                    tensor = Through.apply(leaf)
                    made.append(Reads.apply(tensor))
                    del tensor
                    if step % 2:
                        offload._stores[0].let_go()
                    torch.empty(MIB, device="cuda").copy_(leaf.detach())  # where the tensor was
            here.wait_stream(there)
            if step == 2:
                made[4].sum().backward()  # and the others are dropped, while they may be on their way
            else:
                sum(each.sum() for each in made).backward()
            del made
            torch.empty(MIB, device="cuda").copy_(leaf.detach())
    assert races() == ""


def test_no_step_waits_on_the_host():
    with cistern.torch.host_activations("1GiB") as offload:
        Keep.apply(numbers(MIB)[1])
    _, tensor = numbers(MIB)
    waits = cistern.default(0).stats().num_sync_all_streams
    end = torch.cuda.Event()
    with offload:
        kept = Keep.apply(tensor)
        del tensor
        kept.sum().backward()
        end.record()
    assert cistern.default(0).stats().num_sync_all_streams == waits


def test_an_error_within_ends_the_step(overflow):
    overflow(1 << 30)
    for offload in (cistern.torch.host_activations(), cistern.torch.host_activations("1GiB")):
        with pytest.raises(KeyError), offload:
            raise KeyError
        assert torch._C._autograd._top_saved_tensors_default_hooks(False) is None


def test_a_compiled_function_saves_its_tensors_there():
    _, tensor = numbers(MIB)
    compiled = torch.compile(lambda given: (given.exp() * given).sum(), backend="aot_eager")
    with cistern.torch.host_activations("1GiB") as offload:
        result = compiled(tensor)
        result.backward()
    assert offload.last_step().tensors >= 1


@pytest.mark.parametrize("wrong, error", [("much", ValueError), (-1, ValueError), (1.5, TypeError), ([], TypeError)])
def test_bytes_that_are_none_are_refused(wrong, error):
    with pytest.raises(error, match="bytes"):
        cistern.torch.host_activations(wrong)
