# OpenVINO as a contestant of compare.py: its ScaledDotProductAttention and the chain MatMul, Softmax, MatMul, which its
# CPU plugin fuses in ways of its own; and whole models. Decides which ways there are, not which counts.
import worker

try:
    import numpy as np
    import openvino as ov
    from openvino import opset13 as ops
    from safetensors.numpy import load_file
except Exception as error:
    worker.absent(error)


class Graph:
    """A model under construction: its inputs with their values."""

    def __init__(self, threads):
        self.threads, self.parameters, self.values = threads, [], []

    def feed(self, array):
        array = np.ascontiguousarray(array)
        self.parameters.append(ops.parameter(array.shape, array.dtype))
        self.values.append(array)
        return self.parameters[-1]

    def bind(self, out):
        return bound(ov.Model([out], self.parameters), self.values, self.threads)


def bound(model, values, threads):
    """A request with inputs and output in memory of their own. Products stay in f32: on a CPU with AMX the default
    would be bf16."""
    compiled = ov.Core().compile_model(model, "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": False})
    request = compiled.create_infer_request()
    held = [ov.Tensor(value, shared_memory=True) for value in values]
    for i, tensor in enumerate(held):
        request.set_input_tensor(i, tensor)

    def run(keep=(compiled, held)):
        request.infer()

    return run, lambda: np.array(request.get_output_tensor(0).data)


def constant(array):
    return ops.constant(np.asarray(array, order="C"))


def chain(query, key, value, mask, scale):
    """softmax(scale·q·kᵀ + mask)·v of operators of their own."""
    scores = ops.matmul(ops.multiply(query, constant(np.float32(scale))), key, False, True)
    return ops.matmul(ops.softmax(scores if mask is None else ops.add(scores, mask), -1), value, False, False)


def additive(visible):
    return np.where(visible, np.float32(0), np.float32(-np.inf))


def masks(shape, t):
    """What is hidden, as bool and to be added, None where nothing is; causality apart."""
    if not shape["key_mask"]:
        return None
    return t["key_mask"][:, None, None, :]


def scale_of(shape):
    return shape["scale"] if shape["scale"] is not None else shape["head_dim"] ** -0.5


def heads_of(graph, shape, query, key, value, visible, fused):
    """Attention of [B, H, S, D] nodes."""
    if fused:
        given = [query, key, value] + ([] if visible is None else [graph.feed(visible)])
        if visible is None and shape["scale"] is not None:
            given.append(constant(np.float32(0)))
        if shape["scale"] is not None:
            given.append(constant(np.float32(shape["scale"])))
        return ops.scaled_dot_product_attention(*given, causal=shape["causal"])
    mask = None if visible is None else graph.feed(additive(visible))
    if shape["causal"]:
        causal = np.tri(shape["query_len"], shape["key_len"], dtype=bool)
        mask = constant(additive(causal[None, None])) if mask is None else ops.add(mask, constant(additive(causal)))
    return chain(query, key, value, mask, scale_of(shape))


def core(shape, t, threads, variants):
    grouped = shape["heads"] != shape["kv_heads"]

    def whole(fused):
        graph = Graph(threads)
        query, key, value = (graph.feed(t[name]) for name in ("query", "key", "value"))
        if grouped:  # it has no groups of its own outside whole decoders
            times = shape["heads"] // shape["kv_heads"]
            b, _, n, d = t["key"].shape
            key, value = (ops.reshape(ops.tile(ops.unsqueeze(part, constant(np.int64(2))),
                                               constant(np.array([1, 1, times, 1, 1]))),
                                      constant(np.array([b, shape["heads"], n, d])), False) for part in (key, value))
        return graph.bind(heads_of(graph, shape, query, key, value, masks(shape, t), fused))

    def group_as_queries():
        graph, (b, h, _, d) = Graph(threads), t["query"].shape
        query = graph.feed(t["query"].reshape(b, shape["kv_heads"], h // shape["kv_heads"], d))
        out = chain(query, graph.feed(t["key"]), graph.feed(t["value"]), None, scale_of(shape))
        return graph.bind(ops.reshape(out, constant(np.array([b, h, 1, d])), False))

    variants.add("ScaledDotProductAttention", "opset 13 ScaledDotProductAttention", lambda: whole(True))
    variants.add("MatMul, Softmax, MatMul", "three operators", lambda: whole(False))
    if grouped and shape["query_len"] == 1:
        variants.add("group as queries", "three operators", group_as_queries)


def layer(shape, t, threads, variants):
    batch, seq, embed = t["x"].shape
    heads = shape["heads"]

    def whole(fused):
        graph = Graph(threads)
        qkv = ops.add(ops.matmul(graph.feed(t["x"]), constant(t["in_proj_weight"]), False, True),
                      constant(t["in_proj_bias"]))
        apart = ops.reshape(qkv, constant(np.array([batch, seq, 3, heads, embed // heads])), False)
        parts = ops.split(ops.transpose(apart, constant(np.array([2, 0, 3, 1, 4]))), constant(np.int64(0)), 3)
        query, key, value = (ops.squeeze(parts.output(i), constant(np.array([0]))) for i in range(3))
        y = heads_of(graph, shape, query, key, value, masks(shape, t), fused)
        y = ops.reshape(ops.transpose(y, constant(np.array([0, 2, 1, 3]))), constant(np.array([batch, seq, embed])), False)
        y = ops.matmul(y, constant(t["out_proj_weight"]), False, True)
        return graph.bind(ops.add(y, constant(t["out_proj_bias"])))

    variants.add("MatMul, ScaledDotProductAttention", "opset 13 ScaledDotProductAttention", lambda: whole(True))
    variants.add("MatMul, MatMul, Softmax, MatMul", "operators of their own", lambda: whole(False))


def model(path, t, threads, variants):
    def whole():
        read = ov.Core().read_model(path)
        names = [next(iter(port.get_names())) for port in read.inputs]
        return bound(read, [np.ascontiguousarray(t[name]) for name in names], threads)

    variants.add("compiled model", "all optimisations", whole)


def prepare(request):
    shape, variants = request["shape"], worker.Variants()
    tensors = load_file(request["inputs"])
    if shape["kind"] == "model":
        model(shape["model"], tensors, request["threads"], variants)
    else:
        (core if shape["kind"] == "core" else layer)(shape, tensors, request["threads"], variants)
    return variants


worker.serve(ov.__version__, prepare)
