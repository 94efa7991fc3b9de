"""The faults of the nine stages, planted into one PyTorch training.

    perflings watch --python > perflings.py
    perflings watch -- python faults.py 4            the training with the fault of stage 4
    perflings watch -- python faults.py 4 healthy    the training without it

docs/watch.md says which lint or panel shows each fault. Faults 3, 4, 5, 7 and 8 show on a GPU only.
"""

import sys
import time

import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention, silu

import perflings

stage, fault = int(sys.argv[1]), sys.argv[2:] != ["healthy"]
seconds = 6.0
perflings.PROFILE_AFTER_S, perflings.LOOK_EVERY_S = 2.0, 1.0
gpu = torch.cuda.is_available()
device = torch.device("cuda" if gpu else "cpu")
vocabulary, hidden, heads, layers = (2048, 1024, 16, 4) if gpu else (64, 64, 4, 2)
batch, tokens = (16, 512) if gpu else (8, 32)
if stage == 7 and fault:
    batch, tokens = 1, 16
torch.manual_seed(0)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        out = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.weight
        if stage == 6 and fault:
            # Autograd does not see a kernel that fills a tensor by itself, so the weights before it get no gradient.
            return torch.empty_like(x).copy_(out.detach())
        return out


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([Norm(), Norm()])
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.up = nn.Linear(hidden, 4 * hidden, bias=False)
        self.down = nn.Linear(2 * hidden, hidden, bias=False)

    def attention(self, x):
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        if stage == 2 and fault:
            for _ in range(8):
                # A copy into the transposed layout, and a copy back.
                k = k.transpose(-1, -2).contiguous().transpose(-1, -2).contiguous()
        if stage == 8 and fault:
            scores = (q @ k.mT) * (hidden // heads) ** -0.5
            scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -1e9)
            y = scores.float().softmax(-1).to(v.dtype) @ v
        else:
            y = scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))

    def mlp(self, x):
        gate, up = self.up(x).chunk(2, -1)
        if stage == 4 and fault:
            # A kernel in which each thread goes through a whole column by itself.
            gate = gate + 0 * gate.detach().flatten(0, 1).cumsum(0).view_as(gate)
        if stage == 5 and fault:
            parts = zip(gate.split(8, -1), up.split(8, -1))
            return self.down(torch.cat([a / (1 + (-a).exp()) * b for a, b in parts], -1))
        return self.down(silu(gate) * up)

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.layers = nn.Sequential(*[Layer() for _ in range(layers)])
        self.norm, self.head = Norm(), nn.Linear(hidden, vocabulary, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=1.0 if stage == 1 and fault else 0.02)

    def forward(self, x, y):
        logits = self.head(self.norm(self.layers(self.embedding(x))))
        return cross_entropy(logits.float().flatten(0, 1), y.flatten())


model = Model().to(device)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=gpu)
short = torch.float16 if stage == 9 else torch.bfloat16
scaler = torch.amp.GradScaler(device.type, enabled=stage == 9 and not fault)
name = f"stage {stage}, {'fault' if fault else 'healthy'}"
run = perflings.watch(model, optimizer, classes=vocabulary, samples=batch, name=name)
end = time.time() + seconds
while time.time() < end:
    with run.phase("data"):
        x = torch.randint(0, vocabulary, (batch, tokens + 1), device=device)
        # Each token follows from the one before.
        x = (x[:, :1] + torch.arange(tokens + 1, device=device) * 7) % vocabulary
    with torch.autocast(device.type, short, enabled=gpu or stage == 9):
        loss = model(x[:, :-1], x[:, 1:])
    scaler.scale(loss).backward()
    if stage == 3 and fault:
        print(loss.item())
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
run.close()
