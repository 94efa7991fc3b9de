"""Stage 1 in PyTorch: a first loss far above ln V comes from weights that are too large."""
import math
import torch
from torch import nn

torch.manual_seed(0)
vocab, hidden = 1000, 128
tokens = torch.randint(vocab, (8, 64))


def first_loss(std):
    embedding, head = nn.Embedding(vocab, hidden), nn.Linear(hidden, vocab, bias=False)
    nn.init.normal_(embedding.weight, std=std)
    head.weight = embedding.weight  # tied: one matrix, initialised once
    logits = head(embedding(tokens))
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()).item()


symptom, remedy = first_loss(1.0), first_loss(0.02)  # nn.Embedding's own default is 1.0
print(f"ln V {math.log(vocab):.2f}; std 1.0: {symptom:.2f}; std 0.02: {remedy:.2f}")
assert symptom > 2 * math.log(vocab) and abs(remedy - math.log(vocab)) < 0.1
