# What the figures mean: who was the best of each peer, the ratio and its spread; as a line, a markdown table and JSON.
# Measures nothing.
import json
import os
import statistics
import time

OURS, PEERS = "Headway", ("PyTorch", "ONNX Runtime", "OpenVINO")


def best_of(entries, who):
    """The contestant's entry with the lowest median, None when it has none."""
    own = [e for e in entries if e["who"] == who and e["seconds"]]
    return min(own, key=lambda e: statistics.median(e["seconds"]), default=None)


def verdict(entries):
    """Ratio of the best peer's time to ours: median and range over rounds, each round against itself."""
    ours = best_of(entries, OURS)
    peers = [e for e in (best_of(entries, who) for who in PEERS) if e]
    if not ours or not peers:
        return {"ratio": None}
    better = min(peers, key=lambda e: statistics.median(e["seconds"]))
    ratios = [theirs / own for theirs, own in zip(better["seconds"], ours["seconds"])]
    return {"ratio": statistics.median(ratios), "ratio_low": min(ratios), "ratio_high": max(ratios),
            "better_peer": f"{better['who']}: {better['name']}"}


def milliseconds(row, who, versions):
    entry = best_of(row["entries"], who)
    if entry:
        return f"{1e3 * statistics.median(entry['seconds']):.4g}"
    if versions[who].startswith("absent"):
        return "absent"
    return "disagrees" if any(r["who"] == who and r.get("disagrees") for r in row["refused"]) else "cannot"


def cells(row, versions):
    s = row["shape"]
    ours = best_of(row["entries"], OURS)
    ratio = f"{row['ratio']:.2f}" if row["ratio"] else "–"
    spread = f"{row['ratio_low']:.2f}–{row['ratio_high']:.2f}" if row["ratio"] else "–"
    return [s["name"], str(row["threads"])] + [milliseconds(row, who, versions) for who in (OURS,) + PEERS] + \
        [ratio, spread, what_ran(ours), row.get("better_peer", "–")]


def what_ran(entry):
    """For a model also the time a node, and attention's share of the time in operators."""
    if not entry or "nodes" not in entry:
        return entry["ran"] if entry else "–"
    per_node = 1e6 * statistics.median(entry["seconds"]) / entry["nodes"]
    return f"{entry['ran']}, {100 * entry['attention_share']:.0f} % of the time; {entry['nodes']} nodes, {per_node:.2f} µs each"


def line(row, versions):
    name, threads, ours, torch, ort, openvino, ratio, spread, ran, better = cells(row, versions)
    return (f"{name:32} {threads}T  ours {ours} ms, torch {torch}, ort {ort}, openvino {openvino}: "
            f"{ratio} ({spread})  {ran} | {better}")


def machine():
    """Model, vector extensions and number of the CPUs that this process may use."""
    model, flags = "unknown CPU", ""
    try:
        with open("/proc/cpuinfo") as info:
            for text in info:
                key, _, value = text.partition(":")
                model = value.strip() if key.strip() == "model name" else model
                flags = value if key.strip() == "flags" else flags
    except OSError:
        pass
    wide = [f for f in ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16") if f in flags.split()]
    return f"{model}, {len(os.sched_getaffinity(0))} CPUs, {' '.join(wide)}"


def dims(s):
    """"B1 H12 128x128x64 causal" or "B1 H12 S128 E768"; a model says nothing."""
    if s["kind"] == "model":
        return ""
    kv = f"/{s['kv_heads']}" if s["kv_heads"] != s["heads"] else ""
    size = f"{s['query_len']}x{s['key_len']}x{s['head_dim']}" if s["kind"] == "core" else \
        f"S{s['query_len']} E{s['embed_dim']}"
    return f"B{s['batch']} H{s['heads']}{kv} {size}" + " causal" * s["causal"] + " key mask" * s["key_mask"]


def markdown(rows, versions, options):
    out = ["# Headway beside its peers", "", f"{time.strftime('%Y-%m-%d')}; {machine()}.", ""]
    out += [f"* {who}: {version}" for who, version in versions.items()]
    out += ["", f"Medians of {options.rounds} interleaved rounds, f32, milliseconds. Ratio: the best peer's time over "
            "ours, round by round; above 1 we are faster. Spread: lowest and highest round. Of each peer the fastest of "
            "its ways counts; all of them are in the JSON file. Outputs agreed within 1e-4 of the largest entry before "
            "anything was timed.", ""]
    groups = list(dict.fromkeys(r["shape"]["group"] for r in rows))
    out += ["| group | threads | shapes | lowest ratio | at | geometric mean |", "|---|--:|--:|--:|---|--:|"]
    for group in groups:
        for threads in dict.fromkeys(r["threads"] for r in rows):
            own = [r for r in rows if r["shape"]["group"] == group and r["threads"] == threads and r["ratio"]]
            if own:
                low = min(own, key=lambda r: r["ratio"])
                mean = statistics.geometric_mean(r["ratio"] for r in own)
                out.append(f"| {group} | {threads} | {len(own)} | {low['ratio']:.2f} | {low['shape']['name']} | {mean:.2f} |")
    head = ["shape", "dims", "threads", "Headway", *PEERS, "ratio", "spread", "Headway ran",
            "best peer"]
    out += ["", "| " + " | ".join(head) + " |", "|---|---|" + "--:|" * (3 + len(PEERS)) + "---|" * 3]
    for row in rows:
        first, *rest = cells(row, versions)
        out.append("| " + " | ".join([first, dims(row["shape"])] + rest) + " |")
    notes = {f"* {r['who']}, {r['name']}, {row['shape']['name']}: {r['why']}": None
             for row in rows for r in row["refused"]}
    if notes:
        out += ["", "Not timed:", ""] + list(notes)
    return "\n".join(out) + "\n"


def write(path, rows, versions, options):
    """The table to `path`, everything to the same name with .json."""
    with open(path, "w") as file:
        file.write(markdown(rows, versions, options))
    with open(os.path.splitext(path)[0] + ".json", "w") as file:
        json.dump({"date": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "machine": machine(), "versions": versions,
                   "rounds": options.rounds, "turn_seconds": options.turn, "rows": rows}, file, indent=1)
