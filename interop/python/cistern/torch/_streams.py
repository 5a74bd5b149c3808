"""Streams that a program makes: Cistern has to know each stream that memory may be used on.

PyTorch does not ask programs where they use a tensor, as long as streams are ordered. The allocator
does not see a stream on which nothing is allocated, such as one that copies to the host. So each
`torch.cuda.Stream` is registered when Python makes it. Streams that C++ makes for itself, as NCCL's
process group does, need no registration. Their work is ordered into a known stream (`Work.wait`)
before the tensors that it uses are released. An ExternalStream is not registered, because its owner
may destroy it without notice. Tensors that are used on one need record_stream.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

#: Takes the GPU's number and the stream's handle. Returns None, or why it was refused.
Register = Callable[[int, int], Optional[bytes]]


def follow(register: Register) -> None:
    """Calls `register` for every torch.cuda.Stream that Python makes from now on."""
    import torch

    made: Any = torch.cuda.Stream.__new__

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        stream = made(cls, *args, **kwargs)
        if not isinstance(stream, torch.cuda.ExternalStream):
            refused = register(stream.device_index, stream.cuda_stream)
            if refused is not None:
                raise RuntimeError(f"cistern.torch: {refused.decode()}")
        return stream

    torch.cuda.Stream.__new__ = staticmethod(new)  # type: ignore[assignment, unused-ignore]
