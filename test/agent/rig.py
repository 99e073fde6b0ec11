# SPDX-License-Identifier: Apache-2.0
"""What a scenario stands on: certificates, a fake machine, a fake API server and one agent, all in a folder that goes."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

from fakeapi import FakeApi

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NVML = os.path.join(ROOT, "build/nvml/libnvidia-ml.so.1")
XML = os.path.join(ROOT, "build/nvml/dgx-h100.xml")
H100 = os.path.join(ROOT, "test/nvml/machines/dgx-h100.machine")
PAGE = os.sysconf("SC_PAGESIZE")


def replace(path, text):
    """As the kubelet does it: by renaming, never in place."""
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)


def make_ca(folder, name):
    """A CA and a certificate of it for 127.0.0.1; returns CA, certificate and key."""
    def run(*args):
        subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    run("req", "-x509", *key, "-days", "2", "-subj", f"/CN={name}", "-keyout", f"{name}-ca.key", "-out", f"{name}-ca.crt")
    run("req", *key, "-subj", "/CN=api", "-keyout", f"{name}.key", "-out", f"{name}.csr")
    with open(os.path.join(folder, f"{name}.ext"), "w") as file:
        file.write("subjectAltName=IP:127.0.0.1\n")
    run("x509", "-req", "-in", f"{name}.csr", "-CA", f"{name}-ca.crt", "-CAkey", f"{name}-ca.key", "-days", "2",
        "-CAcreateserial", "-extfile", f"{name}.ext", "-out", f"{name}.crt")
    return tuple(os.path.join(folder, f"{name}{end}") for end in ("-ca.crt", ".crt", ".key"))


def free_port():
    import socket
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Rig:
    def __init__(self, agent, machine="", node="node-1", args=(), nvml=NVML, start=True, up=True, env=None):
        self.folder = tempfile.mkdtemp(prefix="frond-agent-")
        self.agent_path, self.process = agent, None
        self.machine_file = os.path.join(self.folder, "machine")
        self.token_file, self.ca_file = os.path.join(self.folder, "token"), os.path.join(self.folder, "ca.crt")
        self.machine(machine)
        ca, cert, key = make_ca(self.folder, "first")
        replace(self.token_file, "token-one\n")
        shutil.copy(ca, self.ca_file)
        self.api = FakeApi(node, "token-one", cert, key)
        if not up:
            self.api.down()
        self.args = [*args]
        self.node, self.nvml, self.env = node, nvml, env or {}
        if start:
            self.start()

    def machine(self, lines):
        replace(self.machine_file, f"include {H100}\n{lines}\n")

    def start(self):
        self.listen = free_port()
        self.log = open(os.path.join(self.folder, "log"), "wb")
        self.process = subprocess.Popen(
            [self.agent_path, "--api", f"https://127.0.0.1:{self.api.port}", "--token-file", self.token_file, "--ca-file",
             self.ca_file, "--nvml", self.nvml, "--hwloc-xml", XML, "--listen", f"127.0.0.1:{self.listen}", *self.args],
            env={"PATH": os.environ["PATH"], "NODE_NAME": self.node, "FROND_FAKE_NVML": self.machine_file, **self.env},
            stderr=self.log, stdout=subprocess.DEVNULL)

    def logged(self):
        with open(os.path.join(self.folder, "log")) as file:
            return file.read()

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.listen}{path}", timeout=5) as answer:
            return answer.read().decode()

    def metric(self, name):
        for line in self.get("/metrics").splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        raise AssertionError(f"no metric {name}")

    def statuses(self):
        with self.api.lock:
            return [status for _, status in self.api.accepted]

    def renewals(self):
        with self.api.lock:
            return [when for when, _ in self.api.renewals]

    def wait(self, what, condition, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process is not None and self.process.poll() is not None:
                raise AssertionError(f"the agent ended with {self.process.returncode} while waiting for: {what}\n{self.logged()}")
            try:
                if condition():
                    return
            except OSError:
                pass  # it does not listen yet
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds} s: {what}\n{self.logged()}")

    def wait_healthy(self, seconds=10, after=0):
        self.wait("a status with 8 healthy GPUs",
                  lambda: any(health_of(s) == ["Healthy"] * 8 for s in self.statuses()[after:]), seconds)

    def rss(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * PAGE

    def cpu(self):
        total = 0
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{task}/schedstat") as file:
                total += int(file.read().split()[0])
        return total / 1e9

    def stop(self):
        """Ends it as the kubelet would; returns the exit code."""
        if self.process is None or self.process.poll() is not None:
            return None if self.process is None else self.process.returncode
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("SIGTERM did not end it within 5 s")

    def close(self):
        try:
            self.stop()
        finally:
            self.api.down()
            if self.process is not None:
                self.log.close()
            shutil.rmtree(self.folder, ignore_errors=True)


def health_of(status):
    return [device["health"] for device in status.get("devices", [])]


def once(agent, machine=H100):
    """What the probe says about a machine without faults."""
    out = subprocess.run([agent, "--once", "--nvml", NVML, "--hwloc-xml", XML], check=True, capture_output=True,
                         env={"FROND_FAKE_NVML": machine, "PATH": os.environ["PATH"]})
    return json.loads(out.stdout)
