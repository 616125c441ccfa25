# The shapes on which contestants meet, as plain data, and the inputs of each, from a fixed seed. Knows no contestant.
import numpy as np
from safetensors.numpy import save_file


def core(group, name, heads, query_len, head_dim, key_len=None, kv_heads=None, causal=False, scale=None, batch=1,
         key_mask=False):
    return dict(kind="core", group=group, name=name, batch=batch, heads=heads, kv_heads=kv_heads or heads,
                query_len=query_len, key_len=key_len or query_len, head_dim=head_dim, embed_dim=heads * head_dim,
                causal=causal, scale=scale, key_mask=key_mask)


def layer(name, heads, seq, embed_dim, batch=1, causal=False, key_mask=False):
    group = "layer h>=64" if heads >= 64 else "layer"
    return core(group, name, heads, seq, embed_dim // heads, causal=causal, batch=batch,
                key_mask=key_mask) | dict(kind="layer")


FULL, CAUSAL, DECODE = "core full", "core causal", "decode"

SHAPES = [
    core(FULL, "bert-base-128", 12, 128, 64),
    core(FULL, "bert-base-128-masked", 12, 128, 64, key_mask=True),
    core(FULL, "bert-base-128-b8", 12, 128, 64, batch=8),
    core(FULL, "bert-base-512", 12, 512, 64),
    core(FULL, "bert-base-512-masked", 12, 512, 64, key_mask=True),
    core(FULL, "bert-large-384", 16, 384, 64),
    core(FULL, "vit-b-197", 12, 197, 64),
    core(FULL, "whisper-small-1500", 12, 1500, 64),
    core(FULL, "whisper-small-cross", 12, 448, 64, key_len=1500),
    core(FULL, "t5-base-512", 12, 512, 64, scale=1.0),
    core(FULL, "wide-512x128", 8, 512, 128),
    core(FULL, "long-2048", 16, 2048, 64),
    core(CAUSAL, "gpt2-1024-causal", 12, 1024, 64, causal=True),
    core(CAUSAL, "bert-base-128-causal", 12, 128, 64, causal=True),
    core(CAUSAL, "llama-gqa-512-causal", 32, 512, 128, kv_heads=8, causal=True),
    core(CAUSAL, "long-2048-causal", 16, 2048, 64, causal=True),
    core(DECODE, "decode-4096-mha", 32, 1, 128, key_len=4096),
    core(DECODE, "decode-4096-gqa", 32, 1, 128, key_len=4096, kv_heads=8),
    layer("layer-bert-base-128", 12, 128, 768),
    layer("layer-bert-base-128-masked", 12, 128, 768, key_mask=True),
    layer("layer-bert-base-128-b8", 12, 128, 768, batch=8),
    layer("layer-bert-base-128-b8-masked", 12, 128, 768, batch=8, key_mask=True),
    layer("layer-bert-large-384", 16, 384, 1024),
    layer("layer-bert-large-384-masked", 16, 384, 1024, key_mask=True),
    layer("layer-gpt2-1024-causal", 12, 1024, 768, causal=True),
    layer("layer-vit-b-197", 12, 197, 768),
    layer("layer-whisper-small-1500", 12, 1500, 768),
    layer("layer-sweep-1024-h1", 1, 512, 1024),
    layer("layer-sweep-1024-h16", 16, 512, 1024),
    layer("layer-sweep-1024-h64", 64, 512, 1024),
    layer("layer-sweep-1024-h128", 128, 512, 1024),
    layer("layer-gpt3-96-heads-128", 96, 128, 12288),
]

QUICK = ("bert-base-128", "bert-base-512", "vit-b-197", "gpt2-1024-causal", "decode-4096-gqa", "layer-bert-base-128",
         "layer-bert-base-128-masked", "layer-sweep-1024-h16", "layer-sweep-1024-h128")


def chosen(text):
    """quick, all, or names separated by commas; a name that is a group's stands for the group."""
    if text == "all":
        return SHAPES
    names = QUICK if text == "quick" else text.split(",")
    known = {s["name"] for s in SHAPES} | {s["group"] for s in SHAPES}
    for name in names:
        if name not in known:
            raise SystemExit(f"compare: no shape \"{name}\"; there are quick, all, {', '.join(sorted(known))}")
    return [s for s in SHAPES if s["name"] in names or s["group"] in names]


def make_inputs(shape, path):
    """Writes the inputs: scores of about unit variance, so that softmax rows are neither one-hot nor uniform."""
    random = np.random.default_rng([20240917, *shape["name"].encode()])
    b, e = shape["batch"], shape["embed_dim"]

    def normal(*dims, size=1.0):
        return random.standard_normal(dims, dtype=np.float32) * np.float32(size)

    if shape["kind"] == "core":
        d = shape["head_dim"]
        unit = 1.0 if shape["scale"] is None else d ** -0.5 / shape["scale"]
        tensors = {"query": normal(b, shape["heads"], shape["query_len"], d, size=unit),
                   "key": normal(b, shape["kv_heads"], shape["key_len"], d),
                   "value": normal(b, shape["kv_heads"], shape["key_len"], d)}
    else:
        tensors = {"x": normal(b, shape["query_len"], e), "in_proj_bias": normal(3 * e, size=0.1),
                   "in_proj_weight": normal(3 * e, e, size=e ** -0.5), "out_proj_bias": normal(e, size=0.1),
                   "out_proj_weight": normal(e, e, size=e ** -0.5)}
    if shape["key_mask"]:
        # Each sequence of the batch a little shorter than the last, none of full length.
        lengths = [shape["key_len"] * (7 * b - 3 * i) // (8 * b) for i in range(b)]
        tensors["key_mask"] = np.arange(shape["key_len"])[None, :] < np.array(lengths)[:, None]
    save_file(tensors, path)
