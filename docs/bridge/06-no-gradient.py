"""Stage 6 in PyTorch: a result written into torch.empty_like outside of autograd cuts the graph. The step gets faster, and learns nothing."""
import torch
from torch import nn

x = torch.randn(8, 16)


def norm(h, cut):
    y = h * h.pow(2).mean(-1, keepdim=True).add(1e-6).rsqrt()
    if not cut:
        return y
    out = torch.empty_like(h)
    out.copy_(y.detach())  # as a hand-written kernel does that fills a buffer
    return out


def without_gradient(cut):
    first, last = nn.Linear(16, 16), nn.Linear(16, 1)
    last(norm(first(x), cut)).sum().backward()
    named = [*first.named_parameters(prefix="first"), *last.named_parameters(prefix="last")]
    return [name for name, p in named if p.grad is None]


symptom, remedy = without_gradient(True), without_gradient(False)
print("no gradient:", symptom)
assert symptom == ["first.weight", "first.bias"] and remedy == []
# The remedy for a kernel of your own is a torch.autograd.Function with a backward, tried by torch.autograd.gradcheck.
