"""The programs of overflow.py, in plain PyTorch. Each makes a model, an optimiser, and a function from the number of a
step to a loss. All randomness comes from seeds. Operations without a deterministic backward pass are avoided."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Run:
    """A program that is ready to train. `parts`: its layers, which may be checkpointed."""

    def __init__(self, model, optimizer, loss_of):
        self.model, self.optimizer, self.loss_of = model, optimizer, loss_of
        self.checkpoints = False

    def step(self, number):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device, dtype=torch.bfloat16):
            return self.loss_of(self, number)

    @property
    def device(self):
        return next(self.model.parameters()).device.type

    def through(self, layers, x, *more):
        for layer in layers:
            x = checkpoint(layer, x, *more, use_reentrant=False) if self.checkpoints else layer(x, *more)
        return x


def numbers(seed, *shape, device, most=None):
    generator = torch.Generator(device).manual_seed(seed)
    if most is not None:
        return torch.randint(most, shape, generator=generator, device=device)
    return torch.randn(shape, generator=generator, device=device)


# ---- Transformers ----------------------------------------------------------------------------------


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (each.view(batch, length, self.heads, -1).transpose(1, 2) for each in self.qkv(x).chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, causal=True):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class Language(nn.Module):
    def __init__(self, words, length, width, layers, heads):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.zeros(length, width))
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        nn.init.normal_(self.words.weight, std=0.02)
        self.head.weight = self.words.weight


def next_words(run, tokens):
    model = run.model
    x = run.through(model.layers, model.words(tokens[:, :-1]) + model.places[: tokens.shape[1] - 1])
    return F.cross_entropy(model.head(model.norm(x)).flatten(0, 1), tokens[:, 1:].flatten())


def gpt2_medium(device, small):
    words, length, width, layers, heads, batch = (
        (200, 32, 64, 2, 4, 2) if small else (50304, 1024, 1024, 24, 16, 12))
    model = Language(words, length, width, layers, heads).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    return Run(model, optimizer, lambda run, step: next_words(
        run, numbers(step, batch, length + 1, device=device, most=words)))


class Lora(nn.Module):
    """A frozen layer, and a product of two narrow ones beside it."""

    def __init__(self, frozen, rank):
        super().__init__()
        self.frozen = frozen
        self.down, self.up = nn.Linear(frozen.in_features, rank, bias=False), nn.Linear(rank, frozen.out_features,
                                                                                      bias=False)
        nn.init.normal_(self.up.weight, std=0.01)

    def forward(self, x):
        return self.frozen(x) + self.up(self.down(x))


def lora(device, small):
    words, length, width, layers, heads, batch = (
        (200, 32, 64, 2, 4, 2) if small else (32000, 1024, 2048, 20, 16, 12))
    model = Language(words, length, width, layers, heads)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    model.to(device, torch.bfloat16)
    for block in model.layers:
        block.attention.qkv = Lora(block.attention.qkv, 16).to(device)
        block.attention.out = Lora(block.attention.out, 16).to(device)
    trained = [each for each in model.parameters() if each.requires_grad]
    return Run(model, torch.optim.AdamW(trained, lr=1e-4), lambda run, step: next_words(
        run, numbers(step, batch, length + 1, device=device, most=words)))


class Conditioned(nn.Module):
    """A layer of a diffusion transformer: a condition scales and shifts what each part gets."""

    def __init__(self, width, heads):
        super().__init__()
        self.first = nn.LayerNorm(width, elementwise_affine=False)
        self.second = nn.LayerNorm(width, elementwise_affine=False)
        self.attention = Attention(width, heads, causal=False)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.condition = nn.Linear(width, 6 * width)

    def forward(self, x, given):
        a, b, c, d, e, f = self.condition(F.silu(given))[:, None].chunk(6, dim=-1)
        x = x + c * self.attention(self.first(x) * (1 + a) + b)
        return x + f * self.mlp(self.second(x) * (1 + d) + e)


class Diffusion(nn.Module):
    def __init__(self, channels, width, layers, heads):
        super().__init__()
        self.into, self.out = nn.Linear(channels, width), nn.Linear(width, channels)
        self.layers = nn.ModuleList(Conditioned(width, heads) for _ in range(layers))


def dit(device, small):
    """The one of our own: a diffusion transformer, whose activations are mostly of elementwise operations."""
    channels, width, layers, heads, length, batch = (16, 64, 2, 4, 16, 2) if small else (64, 1024, 24, 16, 1024, 24)
    model = Diffusion(channels, width, layers, heads).to(device)

    def loss_of(run, step):
        clean, noise = (numbers(2 * step + i, batch, length, channels, device=device) for i in (0, 1))
        given = numbers(step, batch, width, device=device)
        found = model.out(run.through(model.layers, model.into(clean + noise), given))
        return (found.float() - noise).square().mean()

    return Run(model, torch.optim.AdamW(model.parameters(), lr=1e-4), loss_of)


# ---- Convolutions ----------------------------------------------------------------------------------


class Bottleneck(nn.Module):
    def __init__(self, into, width, stride):
        super().__init__()
        def conv(a, b, kernel, stride=1):
            return nn.Sequential(nn.Conv2d(a, b, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(b))

        out = 4 * width
        self.body = nn.Sequential(conv(into, width, 1), nn.ReLU(inplace=True), conv(width, width, 3, stride),
                                  nn.ReLU(inplace=True), conv(width, out, 1))
        self.short = conv(into, out, 1, stride) if stride != 1 or into != out else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x), inplace=True)


class Residual(nn.Module):
    def __init__(self, depths, width, classes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width),
                                  nn.ReLU(inplace=True), nn.AvgPool2d(2))
        layers, into = [], width
        for stage, depth in enumerate(depths):
            for i in range(depth):
                layers.append(Bottleneck(into, width << stage, 2 if i == 0 and stage > 0 else 1))
                into = 4 * (width << stage)
        self.layers, self.head = nn.ModuleList(layers), nn.Linear(into, classes)


def resnet152(device, small):
    depths, width, size, batch = ([1, 1], 8, 32, 2) if small else ([3, 8, 36, 3], 64, 224, 192)
    model = Residual(depths, width, 1000).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def loss_of(run, step):
        images = numbers(step, batch, 3, size, size, device=device).to(memory_format=torch.channels_last)
        x = run.through(model.layers, model.stem(images)).mean((2, 3))
        return F.cross_entropy(model.head(x), numbers(step, batch, device=device, most=1000))

    return Run(model, optimizer, loss_of)


class Level(nn.Module):
    def __init__(self, into, out):
        super().__init__()
        parts = []
        for a in (into, out):
            parts += [nn.Conv2d(a, out, 3, padding=1), nn.GroupNorm(8, out), nn.SiLU()]
        self.body = nn.Sequential(*parts)

    def forward(self, x):
        return self.body(x)


class Unet(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        widths = [width << i for i in range(depth)]
        self.down = nn.ModuleList(Level(a, b) for a, b in zip([3, *widths], widths))
        self.smaller = nn.ModuleList(nn.Conv2d(a, a, 2, 2) for a in widths[:-1])
        self.larger = nn.ModuleList(nn.ConvTranspose2d(2 * a, a, 2, 2) for a in widths[:-1])
        self.up = nn.ModuleList(Level(2 * a, a) for a in widths[:-1])
        self.out = nn.Conv2d(width, 3, 1)


def unet(device, small):
    width, depth, size, batch = (8, 2, 16, 2) if small else (64, 5, 512, 16)
    model = Unet(width, depth).to(device, memory_format=torch.channels_last)

    def loss_of(run, step):
        images = numbers(step, batch, 3, size, size, device=device).to(memory_format=torch.channels_last)
        x, kept = run.through(model.down[:1], images), []
        for smaller, level in zip(model.smaller, list(model.down)[1:]):
            kept.append(x)
            x = run.through([level], smaller(x))
        for larger, level in zip(reversed(model.larger), reversed(model.up)):
            x = run.through([level], torch.cat([larger(x), kept.pop()], dim=1))
        return (model.out(x).float() - images).square().mean()

    return Run(model, torch.optim.AdamW(model.parameters(), lr=1e-4), loss_of)


PROGRAMS = {"gpt2_medium": gpt2_medium, "resnet152": resnet152, "unet": unet, "lora": lora, "dit": dit}
