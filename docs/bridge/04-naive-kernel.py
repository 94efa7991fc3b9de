"""Stage 4 in PyTorch: the profiler's table names the operation that takes the time. SwiGLU with a product of its own loop."""
import torch
from torch.profiler import ProfilerActivity, profile, record_function

x, gate, up = torch.randn(64, 128), torch.randn(256, 128), torch.randn(256, 128)


def naive():
    with record_function("swiglu naive"):  # every output by itself
        rows = [torch.nn.functional.silu((gate * row).sum(1)) * (up * row).sum(1) for row in x]
        return torch.stack(rows)


def as_products():
    with record_function("swiglu products"):
        return torch.nn.functional.silu(x @ gate.T) * (x @ up.T)


assert torch.allclose(naive(), as_products(), atol=1e-3)
with profile(activities=[ProfilerActivity.CPU]) as prof:
    naive()
    as_products()
times = {row.key: row.cpu_time_total for row in prof.key_averages()}
print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=6))
assert times["swiglu naive"] > times["swiglu products"]
prof.export_chrome_trace("swiglu.json")  # then: perflings open swiglu.json
