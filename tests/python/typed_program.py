"""A program that uses every public class and function: mypy --strict accepts it, and it runs on the simulated
device. The types of what it gets are written down, so that a wrong one is an error."""

import pathlib
import sys
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Tuple

import cistern
import cistern.torch

MIB = 1 << 20
CONF: cistern.Conf = {"limit": 1 << 30, "recycle": "off", "roundup_power2_divisions": "[256:1,>:2]"}


class OnStream:
    """A stream of another library."""

    def __init__(self, stream: cistern.Stream) -> None:
        self._stream = stream

    def __cuda_stream__(self) -> Tuple[int, int]:
        return self._stream.__cuda_stream__()


def memory(allocator: cistern.Allocator, stream: cistern.StreamLike) -> int:
    block: int = allocator.allocate(MIB, stream)
    allocator.record_stream(block, None)
    base: Tuple[int, int] = allocator.base_allocation(block)
    size: int = allocator.block_size(block)
    place: cistern.Location = allocator.location_of(block)
    allocator.free(block)
    with allocator.buffer(1000, stream) as buffer:
        same: cistern.Buffer = buffer
        same.record_stream(stream)
        size += buffer.size + buffer.address - base[0]
    buffer.free()
    allocator.register_stream(stream)
    allocator.empty_cache()
    return size


def pools(allocator: cistern.Allocator, stream: cistern.Stream) -> cistern.PoolId:
    allocator.pool(location=cistern.Location.HOST).destroy()
    pool: cistern.Pool = allocator.pool(use_on_oom=True, no_split=False)
    with pool.scope() as within, pool.stream_scope(stream):
        again: cistern.Pool = within
        with again.buffer(MIB, stream) as buffer:
            assert buffer.size == MIB
    allocator.free(pool.allocate(512))
    users: int = pool.use_count
    assert users == 1
    pool.empty_cache()
    registered: cistern.Pool = allocator.pool(one_handle=True, limit=64 * MIB)
    address: int = registered.allocate(MIB, stream)
    held: cistern.Hold = allocator.hold(address, MIB)
    with held, registered.hold():
        registered.set_limit(None)
        allocator.free(address)
    held.release()

    def heard(notice: cistern.MemoryNotice) -> None:
        assert notice.change in (cistern.MemoryChange.MAPPED, cistern.MemoryChange.UNMAPPING)

    hook: cistern.MemoryHook = allocator.attach_memory_hook(heard)
    hook.detach()
    registered.destroy()
    name: cistern.PoolId = pool.id
    both: Tuple[int, int] = (name.uuid, name.uid)
    assert both == name
    pool.destroy()
    return name


def sleep(allocator: cistern.Allocator, stream: cistern.Stream) -> int:
    pool: cistern.Pool = allocator.pool()
    block: int = pool.allocate(MIB, stream)
    kept: cistern.Contents = cistern.Contents.SAVE
    pool.set_contents(block, kept)
    slept: cistern.SleepReport = cistern.sleep(pool, contents=cistern.Contents.DROP, after=stream)
    asleep: bool = pool.asleep
    assert asleep
    woken: cistern.WakeReport = cistern.wake(pool, keep_host_memory=False)
    slept = pool.sleep(contents=cistern.Contents.ZERO, after=stream)
    woken = pool.wake(keep_host_memory=True)
    numbers: Tuple[int, ...] = (slept.released, slept.stayed, slept.saved, slept.pinned_anew,
                                woken.mapped, woken.restored, woken.pinned, woken.resident)
    allocator.free(block)
    pool.destroy()
    return sum(numbers)


def graph(allocator: cistern.Allocator, stream: cistern.Stream) -> None:
    with stream.recording() as recorded, allocator.capture(recorded) as capture:
        same: cistern.Capture = capture
        allocator.free(allocator.allocate(MIB, stream))
        pool: cistern.PoolId = same.pool_id
        assert pool != (0, 0)
    capture.launching(stream)
    capture.launched()
    while True:
        idle: bool = capture.idle  # the first time, it may have to record an event that has not passed
        stream.synchronize()
        if idle:
            break
    capture.release()
    stream.synchronize()
    allocator.forget_stream(stream)
    handle: int = stream.handle
    assert handle != 0


def pinned(allocator: cistern.Allocator, stream: cistern.Stream) -> int:
    host: cistern.Pinned = allocator.pinned
    block: int = host.allocate(100)
    host.record_stream(block, stream)
    size: int = host.block_size(block)
    host.free(block)
    before: Optional[int] = host.limit
    host.limit = 1 << 30
    host.limit = before
    with host.buffer(64) as buffer:
        same: cistern.PinnedBuffer = buffer
        view: memoryview = same.view()
        view[:4] = b"1234"
        size += same.size + same.address
        buffer.record_stream(stream)
    figures: cistern.PinnedStatistics = host.stats()
    held: cistern.Stat = figures.allocation
    host.reset_peak_stats()
    host.empty_cache()
    return size + held.current + figures.num_waits


def figures(allocator: cistern.Allocator, folder: pathlib.Path) -> None:
    everything: cistern.Statistics = allocator.stats()
    pages: cistern.PageCounts = everything.pages
    assert pages.created >= pages.returned
    group: cistern.StatGroup = everything.large_pool
    one: cistern.Stat = group.reserved_bytes
    counts: List[int] = [one.current, one.peak, one.allocated, one.freed, everything.num_ooms]
    exact: bool = everything.peaks_exact
    by_name: Dict[str, int] = allocator.stats_dict()
    assert exact and by_name["num_ooms"] == counts[-1] == 0
    allocator.reset_peak_stats()
    snapshot: Dict[str, Any] = allocator.snapshot()
    allocator.snapshot(folder / "snapshot.json")
    info: cistern.MemoryInfo = allocator.memory_info()
    free, total = info
    assert snapshot["device"] is not None and free <= total == info.total
    texts: List[str] = [allocator.options, allocator.backend, cistern.__version__]
    assert all(texts)
    allocator.set_overflow("64MiB")
    overflow: cistern.Overflow = allocator.overflow()
    assert overflow.host_bytes == 64 * MIB and overflow.text and overflow.handed_out == overflow.would_do == 0
    allocator.set_overflow(0)
    allocator.limit = allocator.limit // 2
    allocator.set_memory_fraction(0.5)


def recorded(allocator: cistern.Allocator, folder: pathlib.Path) -> int:
    allocator.record_history(folder / "all.trace", most_events=1000, stacks="python", name="typed")
    with cistern.label("step") as step:
        again: cistern.label = step
        allocator.free(allocator.allocate(MIB))
    with again:
        cistern.mark("everywhere")
        allocator.mark("here")
    usage: Dict[str, cistern.LabelUsage] = allocator.label_usage()
    allocator.dump_history(folder / "now.trace")
    allocator.stop_history()
    try:
        cistern.report([folder / "all.trace"], folder / "none/page.html", at=["here"], gpu=0)
    except cistern.ReportError as why:
        runtime_error: RuntimeError = why
        assert str(runtime_error)
    return usage["step"].peak + usage["step"].current


def errors(allocator: cistern.Allocator) -> List[cistern.Status]:
    seen: List[int] = []
    try:
        allocator.allocate(1 << 50)
    except cistern.OutOfMemoryError as full:
        memory_error: MemoryError = full
        seen.append(full.status)
        assert str(memory_error)
    try:
        allocator.free(12345)
    except (cistern.InvalidPointerError, cistern.InvalidHandleError, cistern.InvalidArgumentError) as wrong:
        value_error: ValueError = wrong
        seen.append(wrong.status)
        assert str(value_error)
    try:
        cistern.Allocator("sim", conf="none:1").destroy()
    except cistern.InvalidOptionError as refused:
        seen.append(refused.status)
    try:
        cistern.default().destroy()
    except (cistern.InvalidStateError, cistern.DeviceError, cistern.NoDeviceError, cistern.NotSupportedError,
            cistern.InternalError) as state:
        runtime_error: RuntimeError = state
        seen.append(state.status)
        assert str(runtime_error)
    try:
        allocator.snapshot("/dev/null/no")
    except cistern.FileError as unwritten:
        os_error: OSError = unwritten
        seen.append(unwritten.status)
        assert str(os_error)
    try:
        allocator.pinned.allocate(1 << 50)
    except cistern.HostOutOfMemoryError as host:
        seen.append(host.status)
    assert issubclass(cistern.ReplayError, cistern.CisternError)
    return [cistern.Status(status) for status in seen]


def replayed(trace: pathlib.Path) -> float:
    result: cistern.Replay = cistern.replay(trace, "cistern", conf=[CONF, "limit:40GiB"], capacity="40GiB", gpu_lag_us=10_000)
    with trace.open("rb") as opened:
        several: List[cistern.Replay] = cistern.replay_all([opened], ["torch-rules", "direct"], generate=["train:1"],
                                                           progress=False)
    calls: Optional[Mapping[str, int]] = several[0].device_calls
    efficiency: Optional[float] = result.efficiency
    assert result.ok and calls is not None and efficiency is not None and len(several) == 4
    return efficiency


def under_pytorch(mode: Optional[cistern.torch.Mode] = None) -> Optional[str]:
    """For a process that has PyTorch."""
    chosen: str = cistern.torch.enable(mode, oom_dump=pathlib.Path("."), overflow="1GiB")
    pool = cistern.torch.MemPool(use_on_oom=True, limit=MIB)
    import torch

    labels: cistern.torch.ModuleLabels = cistern.torch.label_modules(torch.nn.Linear(2, 2), "line", backward=False)
    labels.remove()
    with cistern.torch.host_memory("cuda"):
        torch.zeros(1, device="cuda")
    with cistern.torch.region("weights"):
        torch.zeros(1, device="cuda")
    slept: cistern.torch.Slept = cistern.torch.sleep("weights", contents=cistern.Contents.SAVE)
    asleep: bool = cistern.torch.asleep("weights")
    woken: cistern.torch.Woken = cistern.torch.wake("weights", keep_host_memory=True)
    assert asleep and slept.released == woken.mapped and cistern.torch.pool("weights") is not None
    offload: cistern.torch.HostActivations = cistern.torch.host_activations(bytes="1GiB", device=0)
    with offload as again, cistern.torch.host_memory():
        assert again is offload
    optimizer = torch.optim.AdamW(torch.nn.Linear(2, 2).parameters())
    assert cistern.torch.host_optimizer_state(optimizer) is optimizer
    step: cistern.torch.MovedActivations = offload.last_step(0)
    over: cistern.Overflow = cistern.torch.overflow(device=0)
    assert step.moved + step.tensors <= step.budget and over.host_bytes > 0
    assert pool is not None and chosen == cistern.torch.enabled()
    return cistern.torch.enabled()


def main(trace: pathlib.Path) -> None:
    with cistern.Allocator.sim(capacity=1 << 30, gpu_lag_ns=1000, conf=CONF) as allocator:
        with allocator.stream() as stream, tempfile.TemporaryDirectory() as folder:
            for each in (None, 0, stream, OnStream(stream)):
                assert memory(allocator, each) > 0
            pools(allocator, stream)
            graph(allocator, stream)
            assert sleep(allocator, stream) > MIB
            assert pinned(allocator, stream) > 0
            figures(allocator, pathlib.Path(folder))
            assert recorded(allocator, pathlib.Path(folder)) == MIB
            print(*(status.name for status in errors(allocator)))
    print(f"{replayed(trace):.3f}", cistern.torch.enabled(), cistern.default(0).backend)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
