"""A small training program for PyTorch that runs out of memory. It shows what a report says of that:

    python -m cistern.torch --report report.html examples/train.py

It keeps to 512 MiB (--limit-mib), whatever GPU it has. Four things are planted, for the report to show:

- `Index.load` holds the most, 272 MiB, all the time.
- `Samples.keep` copies two MiB in each step, and never lets go of a copy.
- The batch of step 24 is six times as long as the others. The scores take 36 times as much, and a request
  of `Attention.forward` fails.
- Without the index the step would have fit.

The modules are labels, and each step is a moment of the page. Each layer works on single elements, so that
the program runs on a simulated device too.
"""

import argparse

import cistern
import cistern.torch
import torch
from torch import nn

MIB = 1 << 20
BATCH, WIDTH = 4, 128
USUAL, LONG, LONG_STEP = 256, 1536, 24


def floats(mib):
    return mib * MIB // 4


class Index:
    """Looked up by nothing: it is here to be held."""

    def load(self, mib):
        self.vectors = torch.zeros(floats(mib), device="cuda")
        return self


class Samples:
    def __init__(self):
        self.kept = []

    def keep(self, hidden, mib):
        self.kept.append(hidden.detach().reshape(-1)[:1].repeat(floats(mib)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Parameter(torch.ones(WIDTH, device="cuda"))
        self.key = nn.Parameter(torch.ones(WIDTH, device="cuda"))

    def forward(self, hidden):
        query = (hidden * self.query).mean(2)
        key = (hidden * self.key).mean(2)
        scores = query.unsqueeze(2) * key.unsqueeze(1)
        weights = scores.exp()
        return hidden + weights.mean(2, keepdim=True)


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(256, WIDTH, device="cuda"))
        self.bias = nn.Parameter(torch.zeros(WIDTH, device="cuda"))

    def forward(self, hidden):
        return hidden * self.weight.mean(0) + self.bias


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.feed_forward = FeedForward()

    def forward(self, hidden):
        return self.feed_forward(self.attention(hidden))


class Model(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    def forward(self, hidden):
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden


def load_batch(step):
    tokens = LONG if step == LONG_STEP else USUAL
    return torch.ones(BATCH, tokens, WIDTH, device="cuda")


def train(model, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    samples = Samples()
    cistern.torch.label_modules(model)
    for step in range(steps):
        cistern.mark(f"step {step}")
        hidden = model(load_batch(step))
        loss = hidden.mean()
        loss.backward()
        with cistern.label("optimizer"):
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        samples.keep(hidden, 2)
        print(f"step {step}: loss {loss.item():.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Trains until it runs out of memory.")
    parser.add_argument("--limit-mib", type=int, default=512)
    parser.add_argument("--steps", type=int, default=40)
    wanted = parser.parse_args()
    torch.cuda.set_per_process_memory_fraction(wanted.limit_mib * MIB / torch.cuda.mem_get_info()[1])
    index = Index().load(272)
    train(Model(layers=4), wanted.steps)
    del index


if __name__ == "__main__":
    main()
