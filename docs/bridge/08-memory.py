"""Stage 8 in PyTorch: scores of T x T are kept for the backward pass. On a GPU: torch.cuda.max_memory_allocated()."""
import torch
from torch.nn.functional import scaled_dot_product_attention


def kept(run, *inputs):
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.numel() * t.element_size()) or t, lambda t: t):
        run(*inputs).sum().backward()
    return sum(saved)


q, k, v = (torch.randn(1, 4, 512, 32, requires_grad=True) for _ in range(3))
composed = lambda q, k, v: (q @ k.transpose(2, 3) / 32**0.5).softmax(-1) @ v
symptom = kept(composed, q, k, v)
remedy = kept(scaled_dot_product_attention, q, k, v)
print(f"kept for the backward pass: composed {symptom / 2**20:.1f} MiB, SDPA {remedy / 2**20:.1f} MiB")
assert remedy < symptom
