"""Trains a small model; prints its losses and the time of a step. PYTORCH_NO_CUDA_MEMORY_CACHING=1 has PyTorch
ask cudaMalloc for everything."""
import hashlib
import time

import torch

torch.manual_seed(0)
torch.backends.cudnn.deterministic = True
torch.use_deterministic_algorithms(True, warn_only=True)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.ReLU(),
                            torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.ReLU(),
                            torch.nn.AdaptiveAvgPool2d(8), torch.nn.Flatten(),
                            torch.nn.Linear(4096, 2048), torch.nn.ReLU(),
                            torch.nn.Linear(2048, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for step in range(60):
    if step == 10:
        torch.cuda.synchronize()
        begin = time.perf_counter()
    images = torch.randn(128 - 8 * (step % 3), 3, 64, 64, device="cuda")
    labels = torch.randint(10, (images.shape[0],), device="cuda")
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
torch.cuda.synchronize()
took = (time.perf_counter() - begin) / 50
digest = hashlib.sha256(str([float(l) for l in losses]).encode()).hexdigest()[:12]
print(f"RESULT losses {digest}\nMETRIC ms_per_step {took * 1e3:.3f}")
