# A contestant: a process of its own that answers lines of JSON. Starts it, speaks to it, tells when it is absent or
# gone. Knows no shape and measures nothing.
import json
import os
import subprocess


class Failed(Exception):
    """What a contestant answered instead of a result."""


class Contestant:
    def __init__(self, name, command, threads, log_path):
        self.name, self.command, self.threads, self.log_path = name, command, threads, log_path
        self.process, self.version, self.absent = None, None, None
        self.start()

    def start(self):
        count = str(self.threads)
        # No contestant's own pool may be larger than agreed, whichever library it comes from.
        environment = os.environ | {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "OMP_DYNAMIC": "FALSE"}
        try:
            with open(self.log_path, "a") as log:
                self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                                text=True, env=environment)
            hello = self.read()
        except (OSError, Failed) as error:
            hello = {"absent": str(error)}
        self.absent, self.version = hello.get("absent"), hello.get("version")

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"{self.name} ended with status {self.process.wait()}; see {self.log_path}")
        return json.loads(line)

    def ask(self, **request):
        if self.process.poll() is not None:
            self.start()
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"{self.name} is gone; see {self.log_path}") from None
        answer = self.read()
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def stop(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
