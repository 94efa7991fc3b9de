"""Stage 8 in PyTorch: scores of T x T are kept for the backward pass. On a GPU: torch.cuda.max_memory_allocated()."""
import torch
from torch.nn.functional import scaled_dot_product_attention


def kept(run, length):
    inputs = [torch.randn(1, 4, length, 32, requires_grad=True) for _ in range(3)]
    saved = {}

    def pack(t):
        saved[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()  # a view keeps no memory of its own
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        run(*inputs).sum().backward()
    return sum(saved.values()) / 2**20


def composed(q, k, v):
    return (q @ k.transpose(2, 3) / 32**0.5).softmax(-1) @ v


for length in (512, 1024, 2048):
    symptom, remedy = kept(composed, length), kept(scaled_dot_product_attention, length)
    print(f"T = {length}: composed keeps {symptom:.1f} MiB, SDPA {remedy:.1f} MiB: {symptom / remedy:.0f} times")
assert symptom > 10 * remedy and kept(composed, 2048) > 3 * kept(composed, 1024)
