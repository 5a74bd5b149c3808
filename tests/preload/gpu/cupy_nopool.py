"""CuPy without its own pool: every array is a cudaMalloc."""
import time

import cupy

cupy.cuda.set_allocator(None)
right = True
(cupy.arange(1 << 20, dtype=cupy.float32) * 2 + 1).sum()
cupy.cuda.Device().synchronize()
begin = time.perf_counter()
for i in range(300):
    n = (1 << 12) << (i % 9)
    x = cupy.arange(n, dtype=cupy.float64)
    y = (x * 2 + 1 - x).sum()
    if i % 20 == 0:
        right &= float(y) == n * (n - 1) / 2 + n
cupy.cuda.Device().synchronize()
print(f"RESULT {'right' if right else 'wrong'}\nMETRIC ms_per_step {1e3 * (time.perf_counter() - begin) / 300:.4f}")
