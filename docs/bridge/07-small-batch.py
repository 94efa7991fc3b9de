"""Stage 7 in PyTorch: at batch 1 the cost of a call is the step. A larger batch costs hardly more."""
import time
import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(50)])


def step(batch):
    x = torch.randn(batch, 64)
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        model(x).sum().backward()
        times.append(time.perf_counter() - begin)
    return sorted(times)[10]


one, many = step(1), step(16)
print(f"batch 1: {1e3 * one:.2f} ms, batch 16: {1e3 * many:.2f} ms; a sample {one / (many / 16):.1f} times as expensive")
assert one > 2 * many / 16
