"""Memory that is used on a stream of which the allocator is told nothing."""

import torch

MIB = 1 << 20
CYCLES = 200_000_000  # about a tenth of a second


def test_a_stream_that_allocates_nothing_keeps_what_it_reads_from_other_streams():
    owner, reader, third = (torch.cuda.Stream() for _ in range(3))
    with torch.cuda.stream(owner):
        seen = torch.full((256 * MIB,), 7, dtype=torch.uint8, device="cuda")
    there = torch.empty(256 * MIB, dtype=torch.uint8, pin_memory=True)
    for _ in range(4):
        reader.wait_stream(owner)
        with torch.cuda.stream(reader):
            torch.cuda._sleep(CYCLES)
            there.copy_(seen, non_blocking=True)
        del seen  # the owner waits for the reader before its own next use, as PyTorch asks
        owner.synchronize()
        with torch.cuda.stream(third):
            others = [torch.full((64 * MIB,), 1, dtype=torch.uint8, device="cuda") for _ in range(8)]
        torch.cuda.empty_cache()
        with torch.cuda.stream(third):
            others += [torch.full((64 * MIB,), 2, dtype=torch.uint8, device="cuda") for _ in range(8)]
        reader.synchronize()
        assert bool((there == 7).all())
        owner.wait_stream(reader)
        del others
        with torch.cuda.stream(owner):
            seen = torch.full((256 * MIB,), 7, dtype=torch.uint8, device="cuda")


def test_streams_of_all_kinds_are_registered_and_work():
    plain, high = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
    same = torch.cuda.ExternalStream(plain.cuda_stream)
    assert isinstance(high, torch.cuda.Stream) and same.cuda_stream == plain.cuda_stream
    with torch.cuda.stream(high):
        value = torch.ones(4, device="cuda").sum()
    torch.cuda.current_stream().wait_stream(high)
    assert value.item() == 4


def test_hundreds_of_streams_do_not_stand_in_the_way():
    streams = [torch.cuda.Stream() for _ in range(200)]
    kept = []
    for stream in streams:
        with torch.cuda.stream(stream):
            kept.append(torch.ones(MIB, device="cuda"))
    torch.cuda.synchronize()
    assert sum(t.sum().item() for t in kept) == 200 * MIB
