#!/usr/bin/env python3
"""Random calls of CachedAttention and append against PyTorch in float64.

    cached_differential.py --first 0 --count 1000 [--seed 0]

A case is ragged lengths with chunks of queries, a layout of the cache (contiguous, other strides, slots, paged, ring,
paged ring, shared blocks), types, window, biases, masks, and NaN in every row that nobody may read and in some that
hidden keys lie in. Errors are held against headway/numerical_bound.h. What is printed beside a finding runs that case
alone. Needs the package of tools/python, and torch; nothing that Headway builds or tests needs this script.
"""
import argparse
import math
import random
import sys

import torch

import headway
from append_differential import appended
from cached_numbers import EPSILON, TYPES, UNDERFLOW, half_step


class Case:
    """Case `number` of a seed: a cache with tokens in it, and what a call over it is given."""

    def __init__(self, seed, number):
        self.rng = rng = random.Random(f"{seed} {number}")
        self.generator = torch.Generator().manual_seed(rng.getrandbits(60))
        self.type = rng.choice(["f32", "f32", "bf16", "f16"])
        self.cache_type = self.type if rng.random() < 0.6 else rng.choice(list(TYPES))
        self.kv_heads = rng.choice([1, 1, 2, 3, 8])
        self.heads = self.kv_heads * rng.choice([1, 1, 2, 4, 5, 7])
        self.width = rng.choice([4, 8, 16, 20, 32, 64, 80, 128])
        self.value_width = self.width if rng.random() < 0.7 else rng.choice([8, 12, 64])
        self.layout = rng.choice(["plain", "strided", "slots", "paged", "paged", "paged", "ring", "paged ring"])
        self.block = rng.choice([1, 2, 4, 16, 16, 17, 64])
        self.make_sequences()
        self.causal = rng.random() < 0.8
        self.window = None
        if rng.random() < 0.35:
            self.window = (rng.choice([None, 0, 1, 5, 16, 33, 100]), rng.choice([None, 0, 0, 3, 20]))
        self.scale = rng.choice([None, None, 0.05, 0.4])
        self.softcap = rng.choice([0.0, 0.0, 0.0, 3.0, 30.0])
        self.place()
        self.query = self.normal(self.tokens, self.heads, self.width).to(TYPES[self.type])
        self.make_biases()
        self.poison_some()

    def normal(self, *shape):
        return torch.randn(shape, generator=self.generator)

    def make_sequences(self):
        rng = self.rng
        one_each = rng.random() < 0.25
        longest = rng.choice([8, 40, 40, 130, 130, 600, 2000])
        self.counts, self.lengths = [], []
        for _ in range(rng.choice([1, 1, 2, 3, 6])):
            count = 1 if one_each else rng.choice([0, 1, 1, 1, 2, 3, 5, 8, 16, 33, 70])
            past = rng.choice([0, rng.randrange(longest), rng.randrange(longest)])
            self.counts.append(count)
            self.lengths.append(count + past)
        self.starts = [sum(self.counts[:b]) for b in range(len(self.counts) + 1)]
        self.tokens = self.starts[-1]

    def place(self):
        """The cache, NaN but in the rows of positions that are there."""
        rng, batch, longest = self.rng, len(self.counts), max(max(self.lengths), 1)
        ring = "ring" in self.layout
        # Newest positions that a ring keeps; a token's own are always there.
        rows = rng.randrange(max(max(self.counts), 1), longest + 4) if ring else longest + rng.choice([0, 1, 5])
        self.slots = self.table = None
        outer = batch
        if "paged" in self.layout:
            wide = -(-rows // self.block)
            outer = batch * wide + 2
            order = list(range(outer))
            rng.shuffle(order)
            self.table = [order[b * wide:(b + 1) * wide] for b in range(batch)]
            if not ring and batch > 1 and rng.random() < 0.3:  # a prefix that all of them share
                shared = min(self.lengths[b] - self.counts[b] for b in range(batch)) // self.block
                for row in self.table[1:]:
                    row[:shared] = self.table[0][:shared]
            rows = self.block
        elif self.layout == "slots":
            outer = batch + 3
            self.slots = rng.sample(range(outer), batch)
        self.capacity = (len(self.table[0]) * self.block if self.table else rows) if ring else None
        self.key, self.value = (self.cache_memory(outer, rows, width) for width in (self.width, self.value_width))
        for b, length in enumerate(self.lengths):
            at, row = self.rows_of(b)
            for cache, width in ((self.key, self.width), (self.value, self.value_width)):
                cache[at, :, row] = self.normal(len(at), self.kv_heads, width).to(cache.dtype)
        if self.table and not ring:  # what lies beyond a length is not looked at
            for b, length in enumerate(self.lengths):
                used = -(-length // self.block)
                self.table[b][used:] = [-7] * (len(self.table[b]) - used)

    def cache_memory(self, outer, rows, width):
        dtype = TYPES[self.cache_type]
        if self.layout == "strided" or self.rng.random() < 0.3:
            memory = torch.full((outer, rows, self.kv_heads, width + self.rng.choice([0, 3])), math.nan, dtype=dtype)
            return memory[..., :width].transpose(1, 2)
        return torch.full((outer, self.kv_heads, rows, width), math.nan, dtype=dtype)

    def positions(self, b):
        """Positions of a sequence that are in the cache."""
        first = 0 if self.capacity is None else max(self.lengths[b] - self.capacity, 0)
        return torch.arange(first, self.lengths[b])

    def rows_of(self, b):
        """Slot or block, and row, of each of them."""
        at = self.positions(b)
        if self.capacity is not None:
            at = at % self.capacity
        if self.table:
            return torch.tensor(self.table[b], dtype=torch.int64)[at // self.block], at % self.block
        return torch.full_like(at, self.slots[b] if self.slots else b), at

    def make_biases(self):
        rng, batch = self.rng, len(self.counts)
        self.sinks = self.normal(self.heads) if rng.random() < 0.2 else None
        self.slopes = self.normal(self.heads).abs() * 0.1 if rng.random() < 0.2 else None
        self.relative, self.future = None, 0
        if rng.random() < 0.15:
            self.future = rng.choice([0, 4])
            self.relative = self.normal(rng.choice([1, 9, 40]) + self.future, self.heads)
        self.mask = self.mask_starts = self.mask_bias = None
        form = rng.choice(["none", "none", "none", "bool", "f32", "bits"])
        if form == "none" or self.tokens == 0:
            return
        if rng.random() < 0.5:  # a tree: each sequence masks its own tokens
            self.mask_starts = [self.lengths[b] - self.counts[b] for b in range(batch)]
            columns = max(self.counts)
        else:
            columns = max(self.lengths) + rng.choice([0, 0, 3, -1])
        columns = max(columns, 1)
        columns = -(-columns // 8) * 8 if form == "bits" else columns
        shown = torch.rand((self.tokens, columns), generator=self.generator) < rng.choice([0.2, 0.8])
        self.mask_bias = torch.zeros(shown.shape, dtype=torch.float64).masked_fill(~shown, -math.inf)
        if form == "bool":
            self.mask = shown
        elif form == "f32":
            added = self.normal(*shown.shape)
            self.mask = added.masked_fill(~shown, -math.inf)
            self.mask_bias = self.mask.double()
        else:
            weights = torch.tensor([1 << bit for bit in range(8)])
            self.mask = (shown.view(self.tokens, -1, 8) * weights).sum(-1).to(torch.uint8)

    def bias_of(self, b):
        """[Hq, tokens, keys] in float64, -inf where a key is hidden."""
        keys = self.positions(b)
        at = self.lengths[b] - self.counts[b] + torch.arange(self.counts[b])
        distance = at[:, None] - keys[None, :]
        hidden = torch.zeros(distance.shape, dtype=torch.bool)
        if self.causal:
            hidden |= distance < 0
        left, right = self.window or (None, None)
        if left is not None:
            hidden |= distance > left
        if right is not None:
            hidden |= distance < -right
        bias = torch.zeros(self.heads, *distance.shape, dtype=torch.float64)
        if self.slopes is not None:
            bias -= self.slopes.double()[:, None, None] * distance.abs()
        if self.relative is not None:
            rows = (distance + self.future).clamp(0, len(self.relative) - 1)
            bias += self.relative.double()[rows].permute(2, 0, 1)
        if self.mask is not None:
            rows = self.mask_bias[self.starts[b]:self.starts[b + 1]]
            column = keys - (self.mask_starts[b] if self.mask_starts else 0)
            added = rows[:, column.clamp(0, rows.shape[1] - 1)].clone()
            added[:, column >= rows.shape[1]] = -math.inf
            added[:, column < 0] = 0
            bias += added
        return bias.masked_fill(hidden, -math.inf)

    def poison_some(self):
        """NaN in some keys that are there: rows that see them are NaN, and no others."""
        self.poisoned = self.rng.random() < 0.25
        for b in range(len(self.counts)) if self.poisoned else ():
            at, row = self.rows_of(b)
            chosen = torch.rand(len(at), generator=self.generator) < 0.1
            self.key[at[chosen], :, row[chosen]] = math.nan
            self.value[at[chosen], :, row[chosen]] = math.nan

    def exact(self, b):
        """out, log_sum_exp and what their bounds are made of, for the tokens of one sequence."""
        at, row = self.rows_of(b)
        group = self.heads // self.kv_heads
        key, value = (part[at, :, row].double().transpose(0, 1).repeat_interleave(group, 0)
                      for part in (self.key, self.value))
        query = self.query[self.starts[b]:self.starts[b + 1]].double().transpose(0, 1)
        scale = 1 / math.sqrt(self.width) if self.scale is None else self.scale
        bias = self.bias_of(b)
        shown = bias > -math.inf
        scores = scale * query @ key.transpose(1, 2)
        if self.softcap:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        scores = torch.where(shown, scores + bias, -math.inf)
        magnitude = abs(scale) * query.abs() @ key.abs().transpose(1, 2) + bias.abs()
        magnitude = torch.where(shown, magnitude, 0.0)
        magnitude = magnitude.amax(-1) if magnitude.shape[-1] else magnitude.sum(-1)
        sinks = (torch.full((self.heads,), -math.inf) if self.sinks is None else self.sinks).double()
        logits = torch.cat([scores, sinks[:, None, None].expand(-1, scores.shape[1], 1)], -1)
        total = torch.logsumexp(logits, -1)
        probs = torch.where(shown, torch.exp(scores - total[..., None]), 0.0)
        seen_nan = (shown & key.isnan().any(-1)[:, None, :]).any(-1)
        value = value.nan_to_num(0.0)
        probs = probs.nan_to_num(0.0)
        out = (probs @ value).masked_fill(seen_nan[..., None], math.nan)
        return out, total.masked_fill(seen_nan, math.nan), probs @ value.abs(), magnitude, shown.sum(-1), seen_nan

    def run(self):
        rng = self.rng
        attention = headway.CachedAttention(
            self.heads, self.width, num_kv_heads=self.kv_heads, value_head_dim=self.value_width, type=self.type,
            cache_type=self.cache_type, scale=self.scale, softcap=self.softcap, causal=self.causal, window=self.window,
            batch_invariant=rng.random() < 0.3)
        cache = headway.KvCache(self.key, self.value, slots=self.slots, block_table=self.table,
                                ring=self.capacity is not None)
        starts = None if set(self.counts) == {1} and rng.random() < 0.5 else self.starts
        query = self.query.clone()
        out = query if self.value_width == self.width and rng.random() < 0.2 else None
        return attention(query, cache, self.lengths, starts, sinks=self.sinks, alibi_slopes=self.slopes,
                         relative_bias=self.relative, relative_bias_future=self.future, mask=self.mask,
                         mask_starts=self.mask_starts, out=out, log_sum_exp=True,
                         threads=headway.Threads(rng.choice([1, 2])))

    def finding(self):
        """The first number beyond its bound, in one line; None when there is none. And the worst ratio to a bound."""
        out, sums = self.run()
        worst = 0.0
        for b, count in enumerate(self.counts):
            tokens = slice(self.starts[b], self.starts[b + 1])
            got, got_sums = out[tokens].double().transpose(0, 1), sums[tokens].double().transpose(0, 1)
            exact, total, weighted, magnitude, keys, seen_nan = self.exact(b)
            rounding = half_step(exact.nan_to_num(0.0), self.type)
            bound = EPSILON * weighted * (24 + 4 * magnitude[..., None]) + UNDERFLOW * keys[..., None]
            sums_bound = EPSILON * (4 + torch.log1p(keys.double()) + 4 * magnitude)
            for name, value, want, limit, extra in (("out", got, exact, bound, rounding),
                                                    ("log_sum_exp", got_sums, total, sums_bound, 0.0)):
                nan = seen_nan[..., None].expand(want.shape) if want.dim() == 3 else seen_nan
                error = torch.where(value == want, 0.0, (value - want).abs())
                bad = torch.where(nan, ~value.isnan(), ~(error <= limit + extra))
                if bad.any():
                    place = bad.nonzero()[0].tolist()
                    return (f"{name} of sequence {b}, [head, token, column] {place} is {value[tuple(place)]:.9g}, "
                            f"expected {want[tuple(place)]:.9g} within {(limit + extra)[tuple(place)]:.3g}"), worst
                ratio = ((error - extra) / limit)[~nan & (limit > 0)]
                worst = max([worst, *ratio.max().view(1).tolist()] if ratio.numel() else [worst])
        return None, worst

    def text(self):
        return (f"{self.type}/{self.cache_type} {self.layout} block {self.block} heads {self.heads}/{self.kv_heads} "
                f"width {self.width}/{self.value_width} tokens {self.counts} lengths {self.lengths} causal {self.causal} "
                f"window {self.window} softcap {self.softcap} mask {None if self.mask is None else self.mask.dtype} "
                f"sinks {self.sinks is not None} alibi {self.slopes is not None} relative {self.relative is not None} "
                f"poisoned {self.poisoned}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--verbose", action="store_true", help="print every case before it runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    findings, worst = 0, 0.0
    for number in range(options.first, options.first + options.count):
        case = Case(options.seed, number)
        if options.verbose:
            print(f"{options.seed} #{number}: {case.text()}", flush=True)
        try:
            found, ratio = case.finding()
            found = found or appended(case)
        except headway.Error as error:
            found, ratio = f"refused: {error}", 0.0
        worst = max(worst, ratio)
        if found:
            findings += 1
            print(f"{found}\n    {case.text()}\n    {sys.argv[0]} --seed {options.seed} --first {number} --count 1",
                  flush=True)
    print(f"{options.count} cases, {findings} findings, worst ratio to a bound {worst:.3f}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
