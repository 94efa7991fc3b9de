"""Stage 4 in PyTorch: the profiler's table names the operation that takes the time. SwiGLU, every output by itself."""
import time
import torch
from torch.nn.functional import silu
from torch.profiler import ProfilerActivity, profile, record_function

torch.set_num_threads(1)  # steadier where other programs run
x, gate, up = torch.randn(64, 128), torch.randn(256, 128), torch.randn(256, 128)


def naive():
    with record_function("swiglu naive"):
        return torch.stack([silu((gate * row).sum(1)) * (up * row).sum(1) for row in x])


def products():
    with record_function("swiglu products"):
        return silu(x @ gate.T) * (x @ up.T)


def seconds(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


assert torch.allclose(naive(), products(), atol=1e-3)
ratios = sorted(seconds(naive) / seconds(products) for _ in range(15))
with profile(activities=[ProfilerActivity.CPU]) as prof:
    naive()
    products()
print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=6))
print(f"the naive one takes {ratios[7]:.0f} times as long ({ratios[1]:.0f} to {ratios[13]:.0f} in 15 rounds)")
assert ratios[7] > 2
prof.export_chrome_trace("swiglu.json")  # then: perflings open swiglu.json
