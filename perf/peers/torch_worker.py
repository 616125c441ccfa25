# PyTorch as a contestant of compare.py: scaled_dot_product_attention for cores; for layers nn.MultiheadAttention and a
# layer by hand that packs the three projections. Decides which ways there are, not which one counts.
import worker

try:
    import torch
    import torch.nn.functional as F
    from safetensors.torch import load_file
except Exception as error:
    worker.absent(error)


def into(call):
    """A run that keeps its last result, and the way to read it."""
    kept = []

    def run():
        with torch.inference_mode():
            kept[:] = [call()]

    return run, lambda: kept[0].contiguous().numpy()


def core(shape, t, variants):
    q, k, v = t["query"], t["key"], t["value"]
    mask = t["key_mask"][:, None, None, :] if shape["key_mask"] else None
    grouped = shape["heads"] != shape["kv_heads"]
    options = dict(is_causal=shape["causal"], scale=shape["scale"])
    variants.add("SDPA", "scaled_dot_product_attention", lambda: into(
        lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=grouped, **options)))
    if shape["query_len"] > 1 or shape["causal"] or mask is not None:
        return
    # One query: the heads of a group share their keys, so they can stand for the queries of one head.
    rows = q.view(shape["batch"], shape["kv_heads"], -1, shape["head_dim"])
    scale = shape["scale"] or shape["head_dim"] ** -0.5
    if grouped:
        variants.add("SDPA, group as queries", "scaled_dot_product_attention", lambda: into(
            lambda: F.scaled_dot_product_attention(rows, k, v, scale=scale).view_as(q)))
    variants.add("matmul, softmax, matmul", "three operators", lambda: into(
        lambda: (torch.softmax((rows * scale) @ k.transpose(-1, -2), -1) @ v).view_as(q)))


def layer(shape, t, variants):
    x, w_in, b_in = t["x"], t["in_proj_weight"], t["in_proj_bias"]
    w_out, b_out = t["out_proj_weight"], t["out_proj_bias"]
    batch, seq, embed = x.shape
    heads = shape["heads"]
    visible = t["key_mask"] if shape["key_mask"] else None
    mask = None if visible is None else visible[:, None, None, :]

    def by_hand():
        def call():
            q, k, v = F.linear(x, w_in, b_in).view(batch, seq, 3, heads, embed // heads).permute(2, 0, 3, 1, 4).unbind()
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=shape["causal"])
            return F.linear(y.transpose(1, 2).reshape(batch, seq, embed), w_out, b_out)
        return into(call)

    def module():
        mha = torch.nn.MultiheadAttention(embed, heads, batch_first=True, device="meta").eval()
        for owner, key, tensor in ((mha, "in_proj_weight", w_in), (mha, "in_proj_bias", b_in),
                                   (mha.out_proj, "weight", w_out), (mha.out_proj, "bias", b_out)):
            setattr(owner, key, torch.nn.Parameter(tensor, requires_grad=False))
        hidden = None if visible is None else ~visible
        causal = torch.nn.Transformer.generate_square_subsequent_mask(seq) if shape["causal"] else None
        return into(lambda: mha(x, x, x, key_padding_mask=hidden, need_weights=False, attn_mask=causal,
                                is_causal=shape["causal"])[0])

    variants.add("linear, SDPA, linear", "F.linear + scaled_dot_product_attention", by_hand)
    variants.add("nn.MultiheadAttention", "nn.MultiheadAttention, need_weights=False", module)
    if shape["embed_dim"] <= 4096:  # packing copies the weights
        variants.add("packed linear, SDPA", "mkldnn packed linear + scaled_dot_product_attention",
                     lambda: packed(shape, x, w_in, b_in, w_out, b_out, mask))


def packed(shape, x, w_in, b_in, w_out, b_out, mask):
    """The projections as torch's own compiler freezes them: weights in oneDNN's blocked layout."""
    batch, seq, embed = x.shape
    heads, rows = shape["heads"], batch * seq
    linear = torch.ops.mkldnn._linear_pointwise
    with torch.inference_mode():
        p_in, p_out = (torch.ops.mkldnn._reorder_linear_weight(w, rows) for w in (w_in, w_out))

    def call():
        qkv = linear(x.view(rows, embed), p_in, b_in, "none", [], "")
        q, k, v = qkv.view(batch, seq, 3, heads, embed // heads).permute(2, 0, 3, 1, 4).unbind()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=shape["causal"])
        return linear(y.transpose(1, 2).reshape(rows, embed), p_out, b_out, "none", [], "").view(batch, seq, embed)
    return into(call)


def prepare(request):
    torch.set_num_threads(request["threads"])
    shape, variants = request["shape"], worker.Variants()
    if shape["kind"] == "model":
        raise ValueError("it has no importer of ONNX files")
    tensors = load_file(request["inputs"])
    (core if shape["kind"] == "core" else layer)(shape, tensors, variants)
    return variants


torch.set_num_interop_threads(1)
worker.serve(f"{torch.__version__} ({torch.backends.cpu.get_cpu_capability()})", prepare)
