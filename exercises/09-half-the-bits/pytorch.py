"""Stage 9 in PyTorch: gradients below f16's smallest number become zero. GradScaler multiplies the loss, and divides again."""
import torch
from torch import nn

torch.set_num_threads(1)  # steadier where other programs run
vocab, hidden, positions = 4096, 16, 1024


def zeros(seed, scaling, half=torch.float16):
    torch.manual_seed(seed)
    x, targets = torch.randn(positions, hidden), torch.randint(vocab, (positions,))
    head = nn.Linear(hidden, vocab, bias=False)
    nn.init.normal_(head.weight, std=3 / hidden**0.5)  # as confident as after some training
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=scaling)
    with torch.autocast("cpu", dtype=half):
        logits = head(x)
        logits.retain_grad()
        loss = nn.functional.cross_entropy(logits.float(), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # divides the gradients; skips a step that overflowed
    scaler.update()
    assert logits.grad.isfinite().all()
    return 100 * (logits.grad == 0).float().mean().item()


rounds = [(zeros(seed, False), zeros(seed, True), zeros(seed, False, torch.bfloat16)) for seed in range(5)]
symptom, remedy, wide = zip(*rounds)
print(f"zeros among the logits' gradients, five seeds: f16 {min(symptom):.0f} to {max(symptom):.0f} %,")
print(f"f16 with GradScaler at most {max(remedy):.1f} %, bf16 {max(wide):.1f} %")
assert min(symptom) > 10 * max(remedy)
