"""Stage 9 in PyTorch: gradients below f16's smallest number are zero. GradScaler multiplies the loss, and skips steps that overflow."""
import torch

w = torch.tensor([1e-5], dtype=torch.float16, requires_grad=True)


def gradient(scale):
    w.grad = None
    (w * 1e-9 * scale).sum().backward()
    return w.grad.float() / scale


symptom, remedy = gradient(1.0).item(), gradient(65536.0).item()
print(f"gradient without scaling {symptom}, with it {remedy:.1e}")
assert symptom == 0.0 and abs(remedy - 1e-9) < 2e-10
# In training: scaler = torch.amp.GradScaler(); scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()
