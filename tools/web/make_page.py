#!/usr/bin/env python3
"""make_page.py ROOT MODULES OUT COMPILER: joins page, scripts, both modules and a trained layer into one HTML file.

<!--name--> in page.html stands for a file beside it; <!--code FILE | TEXT | LINES--> for the lines of a source from the
only one with that text on: where a source has changed so that there is none or there are two, the build fails.
"""
import base64
import datetime
import html
import json
import os
import pathlib
import re
import struct
import sys
import time


def code(root, file, text, lines):
    source = (root / file).read_text().splitlines()
    found = [n for n, line in enumerate(source) if text in line]
    if len(found) != 1:
        sys.exit(f"make_page.py: {file} has {len(found)} lines with '{text}', expected 1")
    part = source[found[0]:found[0] + int(lines)]
    indent = min(len(line) - len(line.lstrip()) for line in part if line.strip())
    shown = html.escape("\n".join(line[indent:] for line in part))
    return (f'<figure class="code"><figcaption>{file}:{found[0] + 1}</figcaption>'
            f'<pre tabindex="0"><code>{shown}</code></pre></figure>')


def tensors(path):
    """{name: (dims, bytes)} of a safetensors file."""
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    data = raw[8 + size:]
    return {name: (entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in json.loads(raw[8:8 + size]).items() if name != "__metadata__"}


def trained_layer(folder):
    """What the page says of the layer; weights in the order in which the page takes them; of its sentences, without the
    padding, the vectors and what torch makes of them in double precision."""
    about, tokens = (json.loads((folder / name).read_text()) for name in ("manifest.json", "tokens.json"))
    weights, (dims, x) = tensors(folder / "weights.safetensors"), tensors(folder / "input.safetensors")["query"]
    _, out = tensors(folder / "expected.safetensors")["output"]
    names = ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]
    row = 4 * dims[2]

    def unpadded(raw):
        return b"".join(raw[row * dims[1] * n:][:row * len(words)] for n, words in enumerate(tokens["tokens"]))

    info = {"E": about["embed_dim"], "heads": about["num_heads"], "source": about["source"],
            "license": about["license"], "sentences": tokens["sentences"], "tokens": tokens["tokens"]}
    packed = b"".join(weights[name][1] for name in names)
    return info, {"trained-weights": packed, "trained-x": unpadded(x), "trained-out": unpadded(out)}


def main():
    root, modules, out = map(pathlib.Path, sys.argv[1:4])
    page = root / "tools/web/page"
    version = (root / "runtime/include/headway/version.h").read_text()
    defines = dict(re.findall(r"define HEADWAY_VERSION_(\w+) (\d+)$", version, re.M))
    trained, arrays = trained_layer(root / "tests/fixtures/minilm_layer0")
    # Reproducible where SOURCE_DATE_EPOCH is set.
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    now = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    built = {
        "version": ".".join(defines[part] for part in ("MAJOR", "MINOR", "PATCH")), "date": now.strftime("%Y-%m-%d"),
        "compiler": sys.argv[4], "command": "tools/web.sh", "trained": trained,
        "licence": "Headway and Highway's headers: Apache License 2.0; the trained layer, of " +
                   f"{trained['source'].split(' from ')[0]}: {trained['license']}; C++ library of LLVM (Apache License 2.0 "
                   "with LLVM exceptions) and musl (MIT), as Emscripten (MIT) links them.",
    }
    binaries = {f"{kind}-module": (modules / f"headway_{kind}.wasm").read_bytes() for kind in ("simd", "scalar")} | arrays

    def put(match):
        name = match[1]
        if name.startswith("code "):
            return code(root, *(part.strip() for part in name[5:].split(" | ")))
        if name == "data":
            about = json.dumps(built, ensure_ascii=False).replace("<", "\\u003c")
            return "\n".join([f'<script type="application/json" id="headway-data">{about}</script>'] + [
                f'<script type="text/plain" id="{name}">{base64.b64encode(raw).decode()}</script>'
                for name, raw in binaries.items()])
        return (page / name).read_text()

    result = re.sub(r"<!--(.+?)-->", put, (page / "page.html").read_text())
    out.parent.mkdir(parents=True, exist_ok=True)
    half = out.with_name(out.name + ".part")
    half.write_text(result)
    half.replace(out)


main()
