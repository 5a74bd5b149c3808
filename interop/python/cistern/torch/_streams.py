"""Streams that a program makes: Cistern has to know each stream that memory may be used on.

PyTorch asks nobody to say where a tensor is used, as long as streams are ordered. A stream on which
nothing is allocated, such as one that copies to the host, is not seen by the allocator. So each
`torch.cuda.Stream` is registered when Python makes it. Streams that C++ makes for itself, as NCCL's
process group does, need no word: their work is ordered into a known stream (`Work.wait`) before the
tensors that it uses are let go. An ExternalStream is not registered, as its owner may destroy it and
nobody would say so: tensors that are used on one need record_stream.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

#: Given the GPU's number and the stream's handle. None, or why it was refused.
Register = Callable[[int, int], Optional[bytes]]


def follow(register: Register) -> None:
    """Calls `register` for every torch.cuda.Stream that Python makes from now on."""
    import torch

    made = torch.cuda.Stream.__new__

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        stream = made(cls, *args, **kwargs)
        if not isinstance(stream, torch.cuda.ExternalStream):
            refused = register(stream.device_index, stream.cuda_stream)
            if refused is not None:
                raise RuntimeError(f"cistern.torch: {refused.decode()}")
        return stream

    torch.cuda.Stream.__new__ = staticmethod(new)  # type: ignore[assignment]
