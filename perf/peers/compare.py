# The driver: gives all contestants the same inputs, checks that their outputs agree, and only then lets them take turns
# and writes down what they took. Knows neither how anybody computes (the workers) nor the shapes (shapes.py).
import argparse
import os
import statistics
import sys
import tempfile
import time

import numpy as np
from safetensors.numpy import load_file

import models
import report
import shapes
from contestant import Contestant, Failed

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = report.OURS
PEERS = {"torch": "PyTorch", "ort": "ONNX Runtime", "openvino": "OpenVINO"}
TOLERANCE = 1e-4  # of the largest entry


def arguments():
    parser = argparse.ArgumentParser(prog="compare.sh",
                                     description="Headway beside PyTorch, ONNX Runtime and OpenVINO")
    parser.add_argument("--threads", default="1,2", help="thread counts, separated by commas")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contestant at each shape")
    parser.add_argument("--shapes", default="quick", help="quick, all, or names or groups separated by commas")
    parser.add_argument("--models", help="instead of shapes: model files or folders of them, separated by commas; "
                                         "a file may be followed by @BxS")
    parser.add_argument("--out", default="peers.md", help="the table; the same name with .json has everything")
    parser.add_argument("--peers", default=",".join(PEERS), help="who is to take part besides us")
    parser.add_argument("--turn", type=float, default=0.2, help="seconds a turn should last")
    parser.add_argument("--worker", required=True, help="the program headway_peer_worker")
    options = parser.parse_args()
    try:
        options.threads = [int(n) for n in options.threads.split(",")]
    except ValueError:
        parser.error(f"--threads is \"{options.threads}\", expected numbers separated by commas")
    if min(options.threads) < 1 or options.rounds < 1 or options.turn <= 0:
        parser.error("--threads, --rounds and --turn must be positive")
    if options.out.endswith(".json"):
        parser.error(f"--out is \"{options.out}\": it names the table, and the JSON file goes beside it")
    unknown = set(options.peers.split(",")) - {*PEERS, "none"}
    if unknown:
        parser.error(f"--peers has {', '.join(sorted(unknown))}, expected {', '.join(PEERS)} or none")
    return options


def start(options, threads, scratch):
    """All contestants, absent ones too; ours first."""
    python = [sys.executable, "-u", "-B"]
    made = []
    for peer, name in {"": OURS, **PEERS}.items():
        command = python + [os.path.join(HERE, f"{peer}_worker.py")] if peer else [options.worker]
        if peer and peer not in options.peers.split(","):
            command = ["echo", '{"absent": "left out by --peers"}']
        log = os.path.join(scratch, name.replace(" ", "_") + ".log")
        made.append(Contestant(name, command, threads, log))
        if made[-1].absent:
            print(f"{name} is absent: {made[-1].absent}", file=sys.stderr)
    if made[0].absent:
        raise SystemExit(1)
    return made


class Entry:
    """One way of one contestant to do a shape, and the seconds of its turns."""

    def __init__(self, contestant, index, variant):
        self.contestant, self.index = contestant, index
        self.facts = variant
        self.times, self.turns = 1, []

    def run(self, times):
        return statistics.median(self.contestant.ask(cmd="run", variant=self.index, times=times)["seconds"])

    def output(self, scratch):
        path = os.path.join(scratch, "out.safetensors")
        self.contestant.ask(cmd="output", variant=self.index, path=path)
        result = load_file(path)["out"]
        os.remove(path)
        return result


def prepare(shape, contestants, inputs, scratch):
    """The entries that can do the shape; and those that cannot, with reasons."""
    entries, refused = [], []
    for contestant in contestants:
        if contestant.absent:
            continue
        try:
            answer = contestant.ask(cmd="prepare", shape=shape, inputs=inputs, threads=contestant.threads,
                                    scratch=scratch)
        except Failed as error:
            refused.append({"who": contestant.name, "name": "all", "why": str(error)})
            continue
        entries += [Entry(contestant, i, v) for i, v in enumerate(answer["variants"])]
        refused += [{"who": contestant.name} | r for r in answer.get("refused", [])]
    return entries, refused


def disagreement(got, want):
    """Largest difference over the largest entry; infinite where something is not a number or of another shape."""
    if got.shape != want.shape or not np.isfinite(got).all() or not np.isfinite(want).all():
        return float("inf")
    return float(np.max(np.abs(got - want)) / max(np.max(np.abs(want)), np.finfo(np.float32).tiny))


def agreeing(entries, refused, scratch):
    """The entries whose output agrees with ours, and the largest difference among them. One of a peer that does not is
    not timed; that it is ours shows in every peer's disagreeing, and counts as a failure of the comparison."""
    if not entries or entries[0].contestant.name != OURS:
        return [], None
    want, kept, worst = entries[0].output(scratch), entries[:1], 0.0
    for entry in entries[1:]:
        try:
            difference = disagreement(entry.output(scratch), want)
        except Failed as error:
            refused.append({"who": entry.contestant.name, "name": entry.facts["name"], "why": str(error)})
            continue
        if difference <= TOLERANCE:
            kept.append(entry)
            worst = max(worst, difference)
        else:
            refused.append({"who": entry.contestant.name, "name": entry.facts["name"], "disagrees": True,
                            "why": f"output differs from ours by {difference:.1e} of the largest entry, "
                                   f"expected at most {TOLERANCE:.0e}"})
    return kept, worst


def compete(entries, options):
    for entry in entries:
        entry.times = max(1, min(500, round(options.turn / max(entry.run(1), 1e-7))))
    for turn in range(options.rounds):
        # Nobody always follows the same one: the order turns by one each round.
        first = turn % len(entries)
        for entry in entries[first:] + entries[:first]:
            time.sleep(0.01)  # lets the pool of the one before stop spinning
            entry.turns.append(entry.run(entry.times))


def compare(shape, contestants, options, scratch):
    inputs = os.path.join(scratch, "inputs.safetensors")
    (models if shape["kind"] == "model" else shapes).make_inputs(shape, inputs)
    entries, refused = prepare(shape, contestants, inputs, scratch)
    os.remove(inputs)
    entries, worst = agreeing(entries, refused, scratch)
    row = {"shape": shape, "threads": contestants[0].threads, "refused": refused, "worst_difference": worst}
    try:
        if entries:
            compete(entries, options)
    except Failed as error:
        refused.append({"who": "somebody", "name": "all", "why": f"while timed: {error}"})
        entries = []
    row["entries"] = [{"who": e.contestant.name, "runs_a_turn": e.times, "seconds": e.turns} | e.facts for e in entries]
    return row | report.verdict(row["entries"])


def main():
    options = arguments()
    picked = models.chosen(options.models) if options.models else shapes.chosen(options.shapes)
    rows, versions = [], {}
    with tempfile.TemporaryDirectory(prefix="headway-peers-") as scratch:
        for threads in options.threads:
            contestants = start(options, threads, scratch)
            versions = {c.name: c.version or f"absent: {c.absent}" for c in contestants}
            for shape in picked:
                rows.append(compare(shape, contestants, options, scratch))
                print(report.line(rows[-1], versions), file=sys.stderr, flush=True)
                report.write(options.out, rows, versions, options)  # a run cut short keeps what it has
            for contestant in contestants:
                contestant.stop()
    print(f"compare: wrote {options.out}", file=sys.stderr)
    failed = [r for r in rows if not r["entries"] or any(x.get("disagrees") for x in r["refused"])]
    if failed:
        names = ", ".join(f"{r['shape']['name']} at {r['threads']}" for r in failed)
        print(f"compare: outputs disagree or nothing ran: {names}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
