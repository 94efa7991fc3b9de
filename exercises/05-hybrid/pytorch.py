"""Stage 5 in PyTorch: fewer launches for the same numbers. SDPA in place of composed attention, AdamW in one call."""
import time
import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile

torch.set_num_threads(1)  # steadier where other programs run
x = torch.randn(4, 64, 128)
mask = torch.ones(64, 64, dtype=torch.bool).tril()


def composed(q, k, v):
    scores = q @ k.transpose(1, 2) / 128**0.5
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v


def fused(q, k, v):
    return scaled_dot_product_attention(q, k, v, is_causal=True)


def training(attention, **how):
    torch.manual_seed(0)
    layers = [(torch.randn(128, 384) / 30).requires_grad_() for _ in range(12)]
    optimizer = torch.optim.AdamW(layers, **how)

    def step():
        y = x
        for w in layers:
            y = y + attention(*(y @ w).chunk(3, -1))
        loss = y.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def seconds(step):
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def operations(step):
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        step()
    return sum(row.count for row in prof.key_averages())


symptom, remedy = training(composed, foreach=False), training(fused, fused=True)
assert abs(symptom() - remedy()) < 1e-4  # and the first step warms up
ratios = sorted(seconds(symptom) / seconds(remedy) for _ in range(15))
counts = operations(symptom), operations(remedy)
print(f"operations a step: composed {counts[0]}, fused {counts[1]};")
print(f"composed takes {ratios[7]:.2f} times as long ({ratios[1]:.2f} to {ratios[13]:.2f} in 15 rounds)")
assert counts[1] < 0.8 * counts[0]
