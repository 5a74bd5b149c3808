"""A JAX computation. XLA_PYTHON_CLIENT_ALLOCATOR=platform has JAX ask cudaMalloc for everything."""
import time

import jax
import jax.numpy as jnp


@jax.jit
def step(w, x):
    def loss(w):
        h = jnp.tanh(x @ w[0])
        return jnp.mean((h @ w[1] - x) ** 2)
    return [a - 0.01 * g for a, g in zip(w, jax.grad(loss)(w))]


key = jax.random.PRNGKey(0)
w = [jax.random.normal(key, (1024, 2048)) / 32, jax.random.normal(key, (2048, 1024)) / 45]
x = jax.random.normal(key, (4096, 1024))
for i in range(60):
    if i == 10:
        jax.block_until_ready(w)
        begin = time.perf_counter()
    w = step(w, x)
jax.block_until_ready(w)
took = (time.perf_counter() - begin) / 50
print(f"RESULT sum {float(sum(jnp.sum(a) for a in w)):.6f}\nMETRIC ms_per_step {took * 1e3:.4f}")
