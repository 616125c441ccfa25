"""append, RotaryTable and HeadNorm against PyTorch in float64, on the caches of cached_differential.py."""
import torch

import headway
from cached_numbers import EPSILON, TYPES, half_step


def appended(case):
    """Appends fresh rows for a case's tokens, with norm and rotation at random: the first wrong number, or None."""
    rng = case.rng
    if case.poisoned or case.tokens == 0 or any(count > (case.capacity or count) for count in case.counts):
        return None
    turned = rng.choice([0, case.width // 2 // 2 * 2, case.width])
    interleaved, across, offset = rng.random() < 0.5, rng.random() < 0.3, rng.choice([0.0, 1.0])
    base = rng.choice([10000.0, 500000.0])
    table = headway.RotaryTable(turned, max(case.lengths) + 1, base, interleaved) if turned else None
    weights = {"query": case.normal(case.heads * case.width if across else case.width),
               "key": case.normal(case.kv_heads * case.width if across else case.width)}
    norm = headway.HeadNorm(1e-6, offset, across, weights["query"], weights["key"]) if rng.random() < 0.5 else None
    source = TYPES[rng.choice(list(TYPES))]
    rows = {"key": case.normal(case.tokens, case.kv_heads, case.width).to(source),
            "value": case.normal(case.tokens, case.kv_heads, case.value_width).to(source), "query": case.query.clone()}
    before = {"key": case.key.clone(), "value": case.value.clone()}
    cache = headway.KvCache(case.key, case.value, slots=case.slots, block_table=case.table,
                            ring=case.capacity is not None)
    query = rows["query"].clone()
    headway.append(cache, rows["key"], rows["value"], case.lengths, case.starts, query=query, rotary=table, norm=norm,
                   threads=headway.Threads(rng.choice([1, 2])))

    def expected(name):
        """The rows as they should lie there, and the size of what was added up to make them."""
        x = rows[name].double()
        if name == "value":
            return x, torch.zeros_like(x)
        if norm:
            mean = x.square().mean((1, 2) if across else 2, keepdim=True)
            weight = offset + weights[name].double().view(*((1, -1, case.width) if across else (1, 1, -1)))
            x = x / torch.sqrt(mean + 1e-6) * weight
        if not turned:
            return x, x.abs() if norm else torch.zeros_like(x)
        at = torch.cat([case.lengths[b] - count + torch.arange(count) for b, count in enumerate(case.counts)])
        angle = at[:, None] * base**(-2 * torch.arange(turned // 2, dtype=torch.float64) / turned)[None, :]
        cos, sin = torch.cos(angle)[:, None], torch.sin(angle)[:, None]
        first = slice(0, turned, 2) if interleaved else slice(0, turned // 2)
        second = slice(1, turned, 2) if interleaved else slice(turned // 2, turned)
        result, size = x.clone(), x.abs()
        result[..., first] = x[..., first] * cos - x[..., second] * sin
        result[..., second] = x[..., second] * cos + x[..., first] * sin
        size[..., first] = size[..., second] = x[..., first].abs() + x[..., second].abs()
        return result, size

    written = {name: torch.zeros(part.shape[0], part.shape[2], dtype=torch.bool) for name, part in before.items()}
    for name in ("key", "value", "query"):
        want, size = expected(name)
        stored = case.type if name == "query" else case.cache_type
        if name == "query" and not norm and not turned:
            size = torch.zeros_like(size)
        for b, count in enumerate(case.counts):
            tokens = slice(case.starts[b], case.starts[b + 1])
            if name == "query":
                got = query[tokens]
            else:
                at, row = (part[len(part) - count:] for part in case.rows_of(b))
                part = case.key if name == "key" else case.value
                got = part[at, :, row]
                written[name][at, row] = True
            error = (got.double() - want[tokens]).abs()
            # A wrong digit of an f32 cosine is half an epsilon; products, sum and norm add a few.
            limit = 8 * EPSILON * size[tokens] + half_step(want[tokens], stored)
            if not (error <= limit).all():
                place = (~(error <= limit)).nonzero()[0].tolist()
                return (f"append: {name} of sequence {b}, [token, head, column] {place} is "
                        f"{got[tuple(place)].item():.9g}, expected {want[tokens][tuple(place)].item():.9g}")
    for name, part in (("key", case.key), ("value", case.value)):
        same = (part == before[name]) | (part.isnan() & before[name].isnan())
        if not same.all(-1).all(1)[~written[name]].all():
            return f"append: {name} changed in a row that no token was to go to"
    return None
