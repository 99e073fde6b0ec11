# SPDX-License-Identifier: Apache-2.0
"""An API server that knows one node, its report, its Lease and how to misbehave. It checks what the real one would check of
a server-side apply, remembers every status and every renewal that it accepted, and answers writes as `mood` and `lease_mood`
tell it."""
import json
import re
import socket
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

BASE = "/apis/gpu.scheduling/v1/gpunodestatuses/"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/frond-system/leases/"
NODE_UID = "0a1b2c3d-0000-4000-8000-00000000cafe"


def contradicts(status):
    """What the definition of the kind, or its reader, would refuse."""
    devices = status.get("devices", [])
    links = {(d["index"], link["peer"]): link["bandwidthGBps"] for d in devices for link in d.get("links", [])}
    return (status["total"] != len(devices)
            or [d["index"] for d in devices] != list(range(len(devices)))
            or len({d["id"] for d in devices}) != len(devices)
            or any(re.fullmatch(r"[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?", d["id"]) is None or len(d["id"]) > 128 for d in devices)
            or any(d["health"] not in ("Healthy", "Unhealthy", "Unknown") for d in devices)
            or any(not 0 <= d.get("utilization", 0) <= 100 for d in devices)
            or any(links.get((b, a)) != speed or a == b for (a, b), speed in links.items()))


class FakeApi:
    def __init__(self, node, token, cert, key, port=0):
        self.node, self.token, self.cert, self.key = node, token, cert, key
        self.lock = threading.Lock()
        self.mood = lambda count: None  # count of the request -> None, or (HTTP code, headers), or seconds to wait
        self.made = False  # the object is there
        self.left = None  # a status that somebody else has left
        self.reads = []  # (path, HTTP code)
        self.forbid_reads = False
        self.refuse_reads = 0  # so many of each path
        self.accepted = []  # (when, status)
        self.requests = []  # (when, HTTP code) of what is written of the report
        self.lease_mood = lambda count: None  # as mood
        self.lease_there = False
        self.renewals = []  # (when, renewTime) that were accepted
        self.lease_requests = []  # (when, HTTP code)
        self.complaints = []  # requests that no agent should make
        self.server, self.port = None, port
        self.up()

    def up(self):
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 60

            def do_PATCH(self):
                api.handle(self)

            def do_GET(self):
                api.answer_read(self)

            def do_POST(self):
                api.complain(f"{self.command} {self.path}")
                self.send_error(405)

            do_PUT = do_DELETE = do_POST

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True
            sockets = []

            def get_request(self):
                raw, peer = super().get_request()
                self.sockets.append(raw)
                return raw, peer

            def finish_request(self, raw, peer):
                # The handshake is made in the thread of the connection: one that fails is one client's affair.
                try:
                    raw.settimeout(20)
                    with context.wrap_socket(raw, server_side=True) as secure:
                        self.sockets.append(secure)
                        super().finish_request(secure, peer)
                except (OSError, ValueError):
                    pass

            def handle_error(self, *_):
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        Server.sockets = []
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def down(self):
        """Nobody listens, and connections that were open are cut."""
        server, self.server = self.server, None
        if server is None:
            return
        server.shutdown()
        server.server_close()
        for sock in server.sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads from it
            except OSError:
                pass

    def complain(self, sentence):
        with self.lock:
            self.complaints.append(sentence)

    def answer_read(self, request):
        said, code = self.read(request)
        with self.lock:
            self.reads.append((request.path, code))
        self.send(request, code, {}, said if code < 400 else {"kind": "Status", "code": code, "message": f"fake answer {code}"})

    def read(self, request):
        if request.headers.get("Authorization") != "Bearer " + self.token:
            return None, 401
        if self.forbid_reads or self.reads.count((request.path, 403)) < self.refuse_reads:
            return None, 403
        if request.path == "/api/v1/nodes/" + self.node:
            if "PartialObjectMetadata" not in request.headers.get("Accept", ""):
                self.complain("all of the node was asked for")
            return {"kind": "PartialObjectMetadata", "metadata": {"name": self.node, "uid": NODE_UID}}, 200
        if request.path != BASE + self.node:
            self.complain(f"GET {request.path}")
            return None, 403
        with self.lock:
            status = self.accepted[-1][1] if self.accepted else self.left
        if status is None:
            return None, 404
        return {"kind": "GpuNodeStatus", "metadata": {"name": self.node}, "status": {**status, "conditions": []}}, 200

    def handle(self, request):
        body = request.rfile.read(int(request.headers.get("Content-Length", "0")))
        of_lease = request.path.startswith(LEASES)
        requests, mood = (self.lease_requests, self.lease_mood) if of_lease else (self.requests, self.mood)
        with self.lock:
            mood = mood(len(requests))
        headers = {}
        if isinstance(mood, (int, float)):
            time.sleep(mood)
            mood = None
        if mood is not None:
            code, headers = mood
        else:
            code = self.apply(request, body)
        with self.lock:
            requests.append((time.monotonic(), code))
        message = {"kind": "Status", "code": code, "message": f"fake answer {code}"} if code >= 400 else json.loads(body)
        self.send(request, code, headers, message)

    def send(self, request, code, headers, message):
        text = json.dumps(message, separators=(",", ":")).encode()
        try:
            request.send_response(code)
            for name, value in headers.items():
                request.send_header(name, value)
            request.send_header("Content-Type", "application/json")
            request.send_header("Content-Length", str(len(text)))
            request.end_headers()
            request.wfile.write(text)
        except OSError:
            pass  # it did not wait

    def apply(self, request, body):
        if request.headers.get("Authorization") != "Bearer " + self.token:
            return 401
        url = urlparse(request.path)
        of_lease = url.path == LEASES + "gns-" + self.node
        match = re.fullmatch(re.escape(BASE) + r"([a-z0-9.-]+)(/status)?", url.path)
        if not of_lease and (match is None or match[1] != self.node):
            self.complain(f"PATCH {request.path}: not its own node's object")
            return 403
        if parse_qs(url.query) != {"fieldManager": ["frond-agent"], "force": ["true"]}:
            self.complain(f"PATCH {request.path}: query")
            return 400
        if request.headers.get("Content-Type") != "application/apply-patch+yaml":
            self.complain("Content-Type " + str(request.headers.get("Content-Type")))
            return 415
        said = json.loads(body)
        owners = {}
        if not self.forbid_reads:
            owners["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": NODE_UID}]
        if of_lease:
            return self.renew(said, owners)
        metadata = {"name": self.node, **(owners if match[2] is None else {})}
        if (said["apiVersion"], said["kind"], said["metadata"]) != ("gpu.scheduling/v1", "GpuNodeStatus", metadata):
            self.complain("object " + body[:200].decode())
            return 422
        if match[2] is None:
            if said.get("spec") != {"nodeName": self.node} or "status" in said:
                self.complain("spec " + body[:200].decode())
                return 422
            self.made = True
            return 201
        if not self.made:
            return 404
        status = said["status"]
        if "heartbeat" not in status or "spec" in said or contradicts(status):
            self.complain("status " + body[:200].decode())
            return 422
        with self.lock:
            self.accepted.append((time.monotonic(), status))
        return 200

    def renew(self, said, owners):
        time_said = said.get("spec", {}).get("renewTime", "")
        want = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": "gns-" + self.node, "labels": {"gpu.scheduling/heartbeat": "true"}, **owners},
                "spec": {"holderIdentity": self.node, "leaseDurationSeconds": 90, "renewTime": time_said}}
        if said != want or re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", time_said) is None:
            self.complain(f"Lease {said}")
            return 422
        with self.lock:
            self.renewals.append((time.monotonic(), time_said))
            code, self.lease_there = 200 if self.lease_there else 201, True
        return code
