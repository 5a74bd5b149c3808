"""Calls of libraries that allocate inside: cuSOLVER, cuFFT, cuDNN, cuBLAS."""
import time

import torch

torch.manual_seed(0)
a = torch.randn(512, 512, device="cuda", dtype=torch.float64)
right = True
begin = time.perf_counter()
for size in (256, 512, 384):
    m = a[:size, :size]
    s = m @ m.T + size * torch.eye(size, device="cuda", dtype=torch.float64)
    right &= torch.allclose(torch.linalg.inv(s) @ s, torch.eye(size, device="cuda", dtype=torch.float64), atol=1e-6)
    u, d, v = torch.linalg.svd(m)
    right &= torch.allclose(u @ torch.diag(d) @ v, m, atol=1e-6)
    x = torch.randn(64, size * 7, device="cuda")
    right &= torch.allclose(torch.fft.ifft(torch.fft.fft(x)).real, x, atol=1e-4)
    c = torch.nn.functional.conv2d(torch.randn(8, 16, 64, 64, device="cuda"), torch.randn(32, 16, 3, 3, device="cuda"))
    right &= bool(torch.isfinite(c).all())
torch.cuda.synchronize()
print(f"RESULT {'right' if right else 'wrong'}\nMETRIC ms {1e3 * (time.perf_counter() - begin):.1f}")
