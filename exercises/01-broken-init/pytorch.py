"""Stage 1 in PyTorch: a first loss far above ln V comes from weights that are too large."""
import math
import torch
from torch import nn

vocab, hidden = 1000, 128


def first_loss(std, seed):
    torch.manual_seed(seed)
    tokens = torch.randint(vocab, (8, 64))
    embedding, head = nn.Embedding(vocab, hidden), nn.Linear(hidden, vocab, bias=False)
    nn.init.normal_(embedding.weight, std=std)
    head.weight = embedding.weight  # tied: one matrix, initialised once
    logits = head(embedding(tokens))
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()).item()


floor = math.log(vocab)
symptom = [first_loss(1.0, seed) for seed in range(9)]  # nn.Embedding's own deviation
remedy = [first_loss(0.02, seed) for seed in range(9)]
print(f"ln V is {floor:.2f}; first loss of nine seeds:")
print(f"deviation 1.0 {min(symptom):.1f} to {max(symptom):.1f}, 0.02 {min(remedy):.3f} to {max(remedy):.3f}")
assert min(symptom) > 2 * floor and max(abs(it - floor) for it in remedy) < 0.1
