"""Small programs to run under each allocator. Each is a generator, program(torch, steps), that yields
a loss after every step; shapes change from step to step as they do in the larger ones they stand for."""

import random


def unet(torch, steps):
    """Convolutions with skips, over images of several sizes."""
    nn = torch.nn

    def block(come, go):
        return nn.Sequential(nn.Conv2d(come, go, 3, padding=1), nn.GroupNorm(8, go), nn.SiLU())

    widths = [64, 128, 256, 512]
    down = nn.ModuleList(block(a, b) for a, b in zip([8, *widths], widths)).cuda()
    up = nn.ModuleList(block(a + b, a) for a, b in zip(widths, widths[1:])).cuda()
    last = nn.Conv2d(64, 8, 1).cuda()
    optimizer = torch.optim.AdamW([*down.parameters(), *up.parameters(), *last.parameters()], lr=1e-4)
    rng = random.Random(1)
    for _ in range(steps):
        size, batch = rng.choice([128, 192, 256, 320]), rng.choice([4, 8, 12])
        x = image = torch.randn(batch, 8, size, size, device="cuda")
        skips = []
        for layer in down:
            x = layer(x)
            skips.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = nn.functional.interpolate(x, scale_factor=2)
        for layer, skip in zip(reversed(up), reversed(skips[:-1])):
            x = nn.functional.interpolate(x, scale_factor=2)
            x = layer(torch.cat([x, skip], 1))
        loss = nn.functional.mse_loss(last(x), image)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.item()


def transformer(torch, steps):
    """A language model over batches of changing length."""
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True, norm_first=True)
    body = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda()
    embed, head = nn.Embedding(32000, 1024).cuda(), nn.Linear(1024, 32000).cuda()
    optimizer = torch.optim.AdamW(
        [*body.parameters(), *embed.parameters(), *head.parameters()], lr=1e-4
    )
    rng = random.Random(2)
    for _ in range(steps):
        tokens = torch.randint(
            0, 32000, (rng.choice([2, 4, 8]), rng.randint(64, 1024)), device="cuda"
        )
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(head(body(embed(tokens))).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.item()


def prefetch(torch, steps):
    """Batches that one stream fetches and prepares while another computes with the last one."""
    fetching = torch.cuda.Stream()
    weights = torch.randn(2048, 2048, device="cuda") / 45
    rng = random.Random(3)

    def fetch():
        with torch.cuda.stream(fetching):
            rows = torch.randint(0, 256, (rng.randint(1000, 40000), 2048), dtype=torch.uint8)
            return rows.pin_memory().cuda(non_blocking=True).float().div_(255)

    coming = fetch()
    for _ in range(steps):
        torch.cuda.current_stream().wait_stream(fetching)
        batch, coming = coming, fetch()
        batch.record_stream(torch.cuda.current_stream())
        for _ in range(3):
            batch = torch.relu(batch @ weights)
        yield batch.mean().item()


def sampled(torch, steps):
    """Sums over neighbours that are drawn anew for each step: no two steps have a size in common."""
    table = torch.randn(500_000, 256, device="cuda")
    layers = torch.nn.ModuleList(torch.nn.Linear(256, 256) for _ in range(3)).cuda()
    optimizer = torch.optim.SGD(layers.parameters(), lr=1e-3)
    rng = random.Random(4)
    for _ in range(steps):
        count = rng.randint(20_000, 60_000)
        features = table[torch.randint(0, len(table), (count * 4,), device="cuda")]
        for layer in layers:
            edges = torch.randint(0, len(features), (2, len(features) * 2), device="cuda")
            sums = torch.zeros_like(features).index_add_(0, edges[0], features[edges[1]])
            features = torch.relu(layer(sums))
        loss = features[:count].square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss.item()
