"""Stage 3 in PyTorch: a timer around a call measures the launch. On a CPU a thread stands for the device's queue."""
import time
from concurrent.futures import ThreadPoolExecutor
import torch

torch.set_num_threads(1)  # steadier where other programs run
device = ThreadPoolExecutor(1)  # one queue: calls return at once, work is done in order
a = torch.randn(1000, 1000)


def seconds(synchronize):
    begin = time.perf_counter()
    work = device.submit(torch.matmul, a, a)
    if synchronize:
        work.result()  # on a GPU: torch.cuda.synchronize()
    read = time.perf_counter() - begin
    work.result()
    return read


seconds(True)  # the first call warms up
rounds = [(seconds(False), seconds(True)) for _ in range(15)]
symptom, remedy = (sorted(times)[7] for times in zip(*rounds))
ratios = sorted(done / submitted for submitted, done in rounds)
print(f"clock read when submitted {1e3 * symptom:.3f} ms, when done {1e3 * remedy:.1f} ms:")
print(f"{ratios[7]:.0f} times ({ratios[1]:.0f} to {ratios[13]:.0f} in 15 rounds)")
assert ratios[7] > 2
