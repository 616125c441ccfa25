"""Writes layers that the live page computed as safetensors files, for `headway attend --check` to judge."""
import json
import pathlib
import struct


def save(path, tensors):
    """{name: (dims, bytes of f32)}"""
    header, at = {}, 0
    for name, (dims, raw) in tensors.items():
        header[name] = {"dtype": "F32", "shape": dims, "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(raw for _, raw in tensors.values()))


def save_layer(folder, name, E, S, h, arrays):
    """`arrays`: the buffers of a layer as bytes, by the names that engine.js gives them."""
    folder = pathlib.Path(folder)
    save(folder / f"{name}.weights", {
        "in_proj_weight": ([3 * E, E], arrays["inWeight"]), "in_proj_bias": ([3 * E], arrays["inBias"]),
        "out_proj.weight": ([E, E], arrays["outWeight"]), "out_proj.bias": ([E], arrays["outBias"])})
    save(folder / f"{name}.input", {"query": ([1, S, E], arrays["x"])})
    save(folder / f"{name}.page", {"output": ([1, S, E], arrays["out"]), "weights": ([1, h, S, S], arrays["probabilities"])})
