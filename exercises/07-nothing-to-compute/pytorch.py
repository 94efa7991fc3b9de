"""Stage 7 in PyTorch: at batch 1 the cost of a call is the step. A larger batch costs hardly more."""
import time
import torch
from torch import nn

torch.set_num_threads(1)  # steadier where other programs run
model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(50)])


def seconds(batch):
    x = torch.randn(batch, 64)
    begin = time.perf_counter()
    model(x).sum().backward()
    return time.perf_counter() - begin


seconds(1), seconds(16)  # the first calls warm up
rounds = [(seconds(1), seconds(16)) for _ in range(31)]
one, many = (sorted(times)[15] for times in zip(*rounds))
ratios = sorted(one / (many / 16) for one, many in rounds)
print(f"batch 1 {1e3 * one:.2f} ms, batch 16 {1e3 * many:.2f} ms: a sample of batch 1 costs")
print(f"{ratios[15]:.1f} times as much ({ratios[3]:.1f} to {ratios[27]:.1f} in 31 rounds)")
assert ratios[15] > 2
