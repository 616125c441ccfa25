# ONNX Runtime as a contestant of compare.py: com.microsoft's MultiHeadAttention, Attention and GroupQueryAttention and
# ai.onnx's Attention, each in the smallest graph that does the shape; and whole models. Decides which ways there are,
# not which counts.
import os
import shutil
import tempfile

import worker

try:
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper
    from safetensors.numpy import load_file
except Exception as error:
    worker.absent(error)

TYPES = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32, "bool": TensorProto.BOOL}


def session_of(path, threads):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 4
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class Model:
    """A graph under construction, its inputs with their values, its weights in a file of their own beside it."""

    def __init__(self, folder):
        self.folder, self.nodes, self.weights, self.inputs = folder, [], [], {}

    def feed(self, name, array):
        self.inputs[name] = np.ascontiguousarray(array)
        return name

    def weight(self, name, array):
        np.ascontiguousarray(array).tofile(os.path.join(self.folder, name))
        tensor = TensorProto(name=name, dims=array.shape, data_type=TYPES[str(array.dtype)])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=name)
        self.weights.append(tensor)
        return name

    def node(self, op, inputs, outputs=1, domain="", **attributes):
        names = [f"{op}{len(self.nodes)}_{i}" for i in range(outputs)]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def microsoft(self, op, inputs, outputs=1, **attributes):
        return self.node(op, inputs, outputs, "com.microsoft", **attributes)

    def bind(self, out, out_dims, threads, opset):
        """A session with all inputs and the output bound to memory of its own: nothing is copied in a run."""
        info = [helper.make_tensor_value_info(n, TYPES[str(a.dtype)], a.shape) for n, a in self.inputs.items()]
        graph = helper.make_graph(self.nodes, "peer", info,
                                  [helper.make_tensor_value_info(out, TensorProto.FLOAT, out_dims)], self.weights)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        path = os.path.join(self.folder, "model.onnx")
        onnx.save_model(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
        session = session_of(path, threads)
        binding = session.io_binding()
        held = [ort.OrtValue.ortvalue_from_numpy(a) for a in self.inputs.values()]
        for name, value in zip(self.inputs, held):
            binding.bind_ortvalue_input(name, value)
        result = ort.OrtValue.ortvalue_from_shape_and_type(out_dims, np.float32)
        binding.bind_ortvalue_output(out, result)
        self.inputs = {}

        def run(keep=(session, held)):
            session.run_with_iobinding(binding)

        return run, lambda: result.numpy()


def rows(tensor):
    """[B, H, S, D] to [B, S, H*D]."""
    b, h, s, d = tensor.shape
    return tensor.transpose(0, 2, 1, 3).reshape(b, s, h * d)


def core(shape, t, threads, folder, variants):
    heads, kv_heads, causal, scale = (shape[k] for k in ("heads", "kv_heads", "causal", "scale"))
    out_dims = list(t["query"].shape)
    batch, _, query_len, head_dim = out_dims
    out_rows = [batch, query_len, heads * head_dim]

    def heads_apart(run_output):
        run, output = run_output
        split = [batch, query_len, heads, head_dim]
        return run, lambda: np.ascontiguousarray(output().reshape(split).transpose(0, 2, 1, 3))

    def standard(opset):
        model = Model(folder())
        inputs = [model.feed(n, t[n]) for n in ("query", "key", "value")]
        if shape["key_mask"]:
            # Its kernel wants the queries' axis whole.
            mask = t["key_mask"][:, None, None, :]
            inputs.append(model.feed("mask", np.broadcast_to(mask, [batch, 1, query_len, shape["key_len"]])))
        return model.bind(model.node("Attention", inputs, is_causal=int(causal), scale=scale), out_dims, threads, opset)

    def multi_head(key_value_rows):
        model = Model(folder())
        layout = rows if key_value_rows else (lambda tensor: tensor)
        inputs = [model.feed("query", rows(t["query"]))] + [model.feed(n, layout(t[n])) for n in ("key", "value")]
        if shape["key_mask"]:
            inputs += ["", model.feed("mask", t["key_mask"].astype(np.int32))]
        out = model.microsoft("MultiHeadAttention", inputs, num_heads=heads, scale=scale, unidirectional=int(causal))
        return heads_apart(model.bind(out, out_rows, threads, 21))

    def grouped():
        # Keys and values come as a step of decoding would find them: all but the last row in the past.
        model, key_len = Model(folder()), shape["key_len"]
        past = key_len - query_len
        inputs = [model.feed("query", rows(t["query"]))]
        inputs += [model.feed(n, rows(t[n][:, :, past:])) for n in ("key", "value")]
        inputs += [model.feed("past_" + n, t[n][:, :, :past]) for n in ("key", "value")]
        inputs += [model.feed("seqlens_k", np.full([batch], key_len - 1, np.int32)),
                   model.feed("total_sequence_length", np.array(key_len, np.int32))]
        out = model.microsoft("GroupQueryAttention", inputs, 3, num_heads=heads, kv_num_heads=kv_heads, scale=scale)
        return heads_apart(model.bind(out[0], out_rows, threads, 21))

    for opset in (24, 23):
        variants.add(f"Attention-{opset}", "ai.onnx Attention", lambda: standard(opset))
        if variants.made:
            variants.refused = []
            break
    if heads == kv_heads:
        variants.add("MultiHeadAttention", "com.microsoft MultiHeadAttention", lambda: multi_head(True))
        variants.add("MultiHeadAttention, heads first", "com.microsoft MultiHeadAttention", lambda: multi_head(False))
    if query_len == 1 or (causal and query_len == shape["key_len"]):
        variants.add("GroupQueryAttention", "com.microsoft GroupQueryAttention", grouped)


def layer(shape, t, threads, folder, variants):
    x, heads, causal = t["x"], shape["heads"], int(shape["causal"])
    embed = x.shape[2]

    def project_out(model, y):
        y = model.node("MatMul", [y, model.weight("w_out", t["out_proj_weight"].T)])
        return model.bind(model.node("Add", [y, model.weight("b_out", t["out_proj_bias"])]), list(x.shape), threads, 21)

    def key_mask(model):
        return [model.feed("mask", t["key_mask"].astype(np.int32))] if shape["key_mask"] else []

    def multi_head():
        model = Model(folder())
        model.feed("x", x)
        parts = np.split(t["in_proj_weight"], 3)
        inputs = [model.node("MatMul", ["x", model.weight(f"w_{i}", part.T)]) for i, part in enumerate(parts)]
        inputs += [model.weight("b_in", t["in_proj_bias"])] + key_mask(model)
        y = model.microsoft("MultiHeadAttention", inputs, num_heads=heads, unidirectional=causal)
        return project_out(model, y)

    def whole():
        model = Model(folder())
        inputs = [model.feed("x", x), model.weight("w_in", t["in_proj_weight"].T), model.weight("b_in", t["in_proj_bias"])]
        y = model.microsoft("Attention", inputs + key_mask(model), num_heads=heads, unidirectional=causal)
        return project_out(model, y)

    variants.add("MatMul, MultiHeadAttention", "com.microsoft MultiHeadAttention", multi_head)
    if embed <= 4096:  # one copy of the widest weights is enough
        variants.add("Attention", "com.microsoft Attention", whole)


def model(path, t, threads, variants):
    def whole():
        session = session_of(path, threads)
        binding = session.io_binding()
        held = {i.name: ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(t[i.name])) for i in session.get_inputs()}
        for name, value in held.items():
            binding.bind_ortvalue_input(name, value)
        for output in session.get_outputs():
            binding.bind_output(output.name, "cpu")
        session.run_with_iobinding(binding)
        # From now on into memory of its own, as ours does.
        results = binding.get_outputs()
        for output, result in zip(session.get_outputs(), results):
            binding.bind_ortvalue_output(output.name, result)
        first = next(r for r in results if r.data_type() == "tensor(float)")

        def run(keep=(session, held, results)):
            session.run_with_iobinding(binding)

        return run, lambda: first.numpy()

    variants.add("session", "all optimisations", whole)


def prepare(request):
    if request["shape"]["kind"] == "model":
        variants = worker.Variants()
        model(request["shape"]["model"], load_file(request["inputs"]), request["threads"], variants)
        return variants
    scratch = tempfile.mkdtemp(dir=request["scratch"])
    variants, shape = worker.Variants(), request["shape"]
    tensors = load_file(request["inputs"])

    def folder():
        return tempfile.mkdtemp(dir=scratch)

    (core if shape["kind"] == "core" else layer)(shape, tensors, request["threads"], folder, variants)
    shutil.rmtree(scratch)  # a mapped file lives on until its session goes
    return variants


worker.serve(ort.__version__, prepare)
