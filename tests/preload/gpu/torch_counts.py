"""Counts what the device has done, by the profiler's records of kernels, copies and sets. Under `cistern run` the
summary says how many submissions were seen: no fewer, or some went past."""
import torch
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)


def work():
    a = torch.randn(256, 256, device="cuda")
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        b = a.to(dtype)
        (b @ b).sum()
    torch.linalg.inv(a.double() + 300 * torch.eye(256, device="cuda", dtype=torch.float64))
    torch.fft.ifft(torch.fft.fft(a))
    images = torch.randn(8, 16, 64, 64, device="cuda", requires_grad=True)
    weights = torch.randn(32, 16, 3, 3, device="cuda", requires_grad=True)
    torch.nn.functional.conv2d(images, weights).square().mean().backward()
    q = torch.randn(2, 4, 128, 64, device="cuda", dtype=torch.float16)
    torch.nn.functional.scaled_dot_product_attention(q, q, q)
    torch.sort(torch.randn(1 << 16, device="cuda"))
    torch.cuda.synchronize()


work()
with profile(activities=[ProfilerActivity.CUDA]) as profiled:
    for _ in range(3):
        work()
done = sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profiled.events())
print(f"RESULT right\nMETRIC device_events {done}\nSUBMISSIONS {done}")
