"""Stage 3 in PyTorch: a timer around a call measures the launch. On a CPU a thread stands for the device's queue."""
import time
from concurrent.futures import ThreadPoolExecutor
import torch

device = ThreadPoolExecutor(1)  # one queue: calls return at once, work is done in order
a = torch.randn(1500, 1500)


def timed(synchronize):
    begin = time.perf_counter()
    work = device.submit(torch.matmul, a, a)
    if synchronize:
        work.result()  # on a GPU: torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    work.result()
    return seconds


timed(True)  # the first call warms up
symptom = min(timed(False) for _ in range(5))
remedy = min(timed(True) for _ in range(5))
print(f"without a wait {1e3 * symptom:.3f} ms, with it {1e3 * remedy:.3f} ms")
assert symptom < remedy
