"""sharded_rank.py MODE CASE STEPS LAYERS: one of the processes that train together. sharded.py runs it.

It prints losses, times and memory as one line of JSON, what the allocator asked of the driver in each
step, and checksums of all gradients and parameters of the first two steps and the last. PyTorch repeats
itself to the last bit here: algorithms are deterministic, without warn_only, which leaves the backward
pass of attention as it is."""

import json
import os
import random
import sys
import time

from under import MIB, enable, used

WIDTH, INNER, WORDS = 2048, 5504, 32000


def llama(layers, device):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = LlamaConfig(vocab_size=WORDS, hidden_size=WIDTH, intermediate_size=INNER, use_cache=False,
                        num_hidden_layers=layers, num_attention_heads=16, num_key_value_heads=8)
    with torch.device(device):
        model = LlamaForCausalLM(shape)
    model.gradient_checkpointing_enable()
    return model


def blocks(torch, count):
    """Layers of a kind that tensor parallel and pipelines can cut."""
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.LayerNorm(WIDTH)
            self.up, self.down = torch.nn.Linear(WIDTH, INNER), torch.nn.Linear(INNER, WIDTH)

        def forward(self, x):
            return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))

    return [Block() for _ in range(count)]


def fsdp2(torch, layers, device, offload=False):
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

    policy = {"mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)}
    if offload:
        policy["offload_policy"] = CPUOffloadPolicy()
    model = llama(layers, "cpu" if offload else device)
    for layer in model.model.layers:
        fully_shard(layer, **policy)
    fully_shard(model, **policy)
    for module in model.modules():  # a policy moves parameters, and no buffers
        for name, buffer in module._buffers.items():
            module._buffers[name] = None if buffer is None else buffer.to(device)
    return model


def fsdp1(torch, layers, device):
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer

    precision = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    return FullyShardedDataParallel(llama(layers, device), mixed_precision=precision, device_id=device,
                                    auto_wrap_policy=ModuleWrapPolicy({LlamaDecoderLayer}),
                                    use_orig_params=True)


def ddp(torch, layers, device):
    return torch.nn.parallel.DistributedDataParallel(llama(layers * 2 // 5, device), device_ids=[device])


def tensor_parallel(torch, layers, device):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    with torch.device(device):
        middle = blocks(torch, layers)
        model = torch.nn.Sequential(torch.nn.Embedding(WORDS, WIDTH), *middle,
                                    torch.nn.Linear(WIDTH, WORDS))
    mesh = init_device_mesh("cuda", (2,))
    for block in middle:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return model


def stage(torch, layers, device):
    rank = torch.distributed.get_rank()
    with torch.device(device):
        parts = blocks(torch, layers // 2)
        parts = [torch.nn.Embedding(WORDS, WIDTH), *parts] if rank == 0 else [
            *parts, torch.nn.Linear(WIDTH, WORDS)]
        return torch.nn.Sequential(*parts)


CASES = {
    "fsdp2": fsdp2, "fsdp1": fsdp1, "ddp": ddp, "tensor": tensor_parallel, "pipeline": stage,
    "offload": lambda torch, layers, device: fsdp2(torch, layers, device, offload=True),
}


def run_pipeline(torch, model, words, device):
    """The loss of the last stage; 0 on the first."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    def loss(out, target):
        return torch.nn.functional.cross_entropy(out.flatten(0, 1), target.flatten())

    rank, losses = torch.distributed.get_rank(), []
    schedule = Schedule1F1B(PipelineStage(model, rank, 2, device), n_microbatches=4, loss_fn=loss)
    schedule.step(words) if rank == 0 else schedule.step(target=words, losses=losses)
    return torch.stack(losses).mean() if losses else torch.zeros((), device=device)


def run_step(torch, case, model, words, device):
    if case == "pipeline":
        return run_pipeline(torch, model, words, device)
    if case == "tensor":
        out = model(words)
        loss = torch.nn.functional.cross_entropy(out.flatten(0, 1), words.flatten())
    else:
        loss = model(input_ids=words, labels=words).loss
    loss.backward()
    return loss.detach()


def checksum(torch, tensors):
    """Of the tensors' bits. Nothing waits before it is all queued."""
    sums = []
    for tensor in tensors:
        tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        if tensor is not None and tensor.numel() > 0:
            bits = torch.int32 if tensor.element_size() == 4 else torch.int16
            sums.append(tensor.detach().contiguous().view(bits).sum(dtype=torch.int64))
    folded = 0
    for value in sums:
        folded = (folded * 1000003 + int(value)) & (1 << 48) - 1
    return f"{folded:012x}"


def calls(torch):
    """Counts of what the allocator has asked of the driver so far: Cistern's pages, or PyTorch's segments."""
    stats = torch.cuda.memory_stats()
    ours = {name[len("cistern."):]: count for name, count in stats.items() if name.startswith("cistern.")}
    return ours or {"segments": stats["num_device_alloc"] + stats["num_device_free"]}


def train(torch, case, steps, layers, device):
    rank = torch.distributed.get_rank()
    torch.cuda.synchronize()
    before = peak = used(torch)
    model = CASES[case](torch, layers, device)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, foreach=case != "tensor")
    shapes, losses, ms, sums, counts = random.Random(40), [], [], [], [calls(torch)]
    for step in range(steps):
        # All ranks of a model that is cut see the same words.
        seed = step if case in ("tensor", "pipeline") else 2 * step + rank
        generator = torch.Generator(device=device).manual_seed(seed)
        batch = 8 if case == "pipeline" else shapes.choice([2, 4, 8] if case.startswith("fsdp") else [2, 4])
        shape = (batch, shapes.randint(300, 1024 if case == "pipeline" else 2048))
        words = torch.randint(0, WORDS, shape, device=device, generator=generator)
        begun = time.time()
        losses.append(run_step(torch, case, model, words, device))
        summed = step < 2 or step == steps - 1
        if summed:
            sums.append(checksum(torch, [p.grad for p in parameters]))
        optimizer.step()
        if summed:
            sums.append(checksum(torch, parameters))
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        ms.append(1e3 * (time.time() - begun))
        peak = max(peak, used(torch))
        counts.append(calls(torch))
    taken = [{name: after[name] - count for name, count in first.items()}
             for first, after in zip(counts, counts[1:])]
    return {"rank": rank, "losses": [float(loss) for loss in losses], "sums": sums, "ms": ms,
            "peak_mib": (peak - before) / MIB, "calls": taken}


def main():
    mode, case, steps, layers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    enable(mode)
    import torch

    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    rank = int(os.environ["RANK"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    backend = "cpu:gloo,cuda:nccl" if case == "offload" else "nccl"
    torch.distributed.init_process_group(backend, device_id=device)
    torch.manual_seed(0)
    print(json.dumps(train(torch, case, steps, layers, device)), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
