# What the Python contestants share: the protocol of headway_worker.cc, spoken for a module that knows how to prepare.
# A variant is (name, what ran, run(), output()): run computes once, output gives the result as a numpy array.
import gc
import json
import os
import sys
import time


class Variants:
    """The ways in which a peer can do one shape; one that it cannot do is kept with the reason."""

    def __init__(self):
        self.made = []
        self.refused = []

    def add(self, name, ran, make):
        """`make()` returns (run, output); what it throws, or its first run, becomes the reason."""
        try:
            run, output = make()
            run()
            self.made.append((name, ran, run, output))
        except Exception as error:  # any reason of a peer's is a reason
            self.refused.append({"name": name, "why": " ".join(str(error).split())[:300]})


def time_runs(run, times):
    run()
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return seconds


def serve(version, prepare):
    """Answers until stdin ends. `prepare(request)` returns Variants."""
    from safetensors.numpy import save_file

    # Answers keep the real stdout; whatever a library prints goes to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    say({"version": version})
    variants = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["cmd"] == "prepare":
                variants = None
                gc.collect()
                variants = prepare(request)
                made = [{"name": name, "ran": ran} for name, ran, _, _ in variants.made]
                say({"variants": made, "refused": variants.refused})
            elif request["cmd"] == "run":
                say({"seconds": time_runs(variants.made[request["variant"]][2], request["times"])})
            else:
                save_file({"out": variants.made[request["variant"]][3]()}, request["path"])
                say({})
        except Exception as error:
            say({"error": f"{type(error).__name__}: " + " ".join(str(error).split())})


def absent(reason):
    print(json.dumps({"absent": " ".join(str(reason).split())}), flush=True)
    sys.exit(0)
