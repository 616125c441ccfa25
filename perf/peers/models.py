# Model files as shapes: each with inputs from a file beside it, or random ones of a given batch and length. Knows no
# contestant.
import glob
import os

import numpy as np


def model(path, inputs=None, size=None):
    stem = os.path.basename(path).removesuffix(".onnx")
    name = stem
    if size:
        name += f" {size[0]}x{size[1]}"
    elif inputs:
        name += " " + (os.path.basename(inputs).removeprefix(stem + ".inputs").removesuffix(".safetensors") or "1")
    return dict(kind="model", group=stem.split("-")[0], name=name, model=os.path.abspath(path), inputs=inputs, size=size)


def chosen(text):
    """Models separated by commas: a folder stands for each file.onnx in it with each file.inputs*.safetensors; a file
    may be followed by @BxS, random inputs in which every free dim but the first is S."""
    shapes = []
    for part in text.split(","):
        path, _, size = part.partition("@")
        files = sorted(glob.glob(os.path.join(path, "*.onnx"))) if os.path.isdir(path) else [path]
        if not files or not all(os.path.exists(f) for f in files):
            raise SystemExit(f"compare: --models has \"{path}\", which is neither a model nor a folder of models")
        for file in files:
            if size:
                dims = size.split("x")
                if len(dims) != 2 or not all(d.isdigit() for d in dims):
                    raise SystemExit(f"compare: --models has \"@{size}\", expected @BxS, as in @12x128")
                shapes.append(model(file, size=[int(d) for d in dims]))
                continue
            found = sorted(glob.glob(file.removesuffix(".onnx") + ".inputs*.safetensors"))
            if not found:
                raise SystemExit(f"compare: {file} has no inputs beside it, expected "
                                 f"{os.path.basename(file).removesuffix('.onnx')}.inputs.safetensors or @BxS")
            shapes += [model(file, inputs=f) for f in found]
    return shapes


def random_inputs(path, size):
    """Token ids below 100, masks all 1, type ids 0, floats of unit variance."""
    import onnx

    random = np.random.default_rng(20240917)
    tensors = {}
    graph = onnx.load(path, load_external_data=False).graph
    constants = {t.name for t in graph.initializer}
    for given in graph.input:
        if given.name in constants:
            continue
        dims = [d.dim_value or size[min(i, 1)] for i, d in enumerate(given.type.tensor_type.shape.dim)]
        kind = onnx.helper.tensor_dtype_to_np_dtype(given.type.tensor_type.elem_type)
        if np.issubdtype(kind, np.floating):
            tensors[given.name] = random.standard_normal(dims).astype(kind)
        elif "mask" in given.name:
            tensors[given.name] = np.ones(dims, kind)
        elif "type" in given.name:
            tensors[given.name] = np.zeros(dims, kind)
        else:
            tensors[given.name] = random.integers(0, 100, dims).astype(kind)
    return tensors


def make_inputs(shape, path):
    from safetensors.numpy import load_file, save_file

    save_file(load_file(shape["inputs"]) if shape["inputs"] else random_inputs(shape["model"], shape["size"]), path)
