// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os"
	"path/filepath"
)

// kwokUser is the account of the simulated kubelets; its rights are in manifests/lab/.
const kwokUser = "frond-lab-kwok"

// frontProxyUser is the one name whose word about other users the API servers take.
const frontProxyUser = "front-proxy-client"

// endpoints are the ports of one lab, all on 127.0.0.1.
type endpoints struct {
	etcd, etcdPeer, apiServer, controller, scheduler int
	agents                                           []int
}

const endpointCount = 5 // and one for each agent

func endpointsFrom(numbers []int) endpoints {
	return endpoints{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[endpointCount:]}
}

func local(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }

// program fills in what all programs share. The environment is a short list of our own, because etcd, KWOK and
// Kubernetes all read variables that a user's shell may have set for other clusters.
func (l Lab) program(name string, port int, args ...string) program {
	env := []string{"HOME=" + l.Dir, "PATH=" + os.Getenv("PATH")}
	for _, name := range []string{"TMPDIR", "TZ", "LD_LIBRARY_PATH", "GOMAXPROCS", "GOCOVERDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return program{
		name: name, path: filepath.Join(l.Bin, name), args: args, env: env, dir: l.Dir, log: l.LogFile(name), port: port,
	}
}

func (l Lab) etcd(e endpoints) program {
	pki := func(name string) string { return l.path("pki", "etcd", name) }
	return l.program(progEtcd, e.etcd,
		"--name=lab",
		"--data-dir="+l.path("etcd"),
		"--listen-client-urls="+local(e.etcd),
		"--advertise-client-urls="+local(e.etcd),
		"--listen-peer-urls="+local(e.etcdPeer),
		"--initial-advertise-peer-urls="+local(e.etcdPeer),
		"--initial-cluster=lab="+local(e.etcdPeer),
		"--client-cert-auth", "--trusted-ca-file="+pki("ca.crt"),
		"--cert-file="+pki("server.crt"), "--key-file="+pki("server.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file="+pki("ca.crt"),
		"--peer-cert-file="+pki("server.crt"), "--peer-key-file="+pki("server.key"),
		"--unsafe-no-fsync", // a lab's data does not outlive its machine; waiting for disks would only make it slow
		"--log-level=warn",
	)
}

func (l Lab) apiServer(e endpoints) program {
	pki := func(name string) string { return l.path("pki", name) }
	return l.program(progAPIServer, e.apiServer,
		"--etcd-servers="+local(e.etcd),
		"--etcd-cafile="+pki("etcd/ca.crt"),
		"--etcd-certfile="+pki("etcd/apiserver.crt"),
		"--etcd-keyfile="+pki("etcd/apiserver.key"),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", // no pod could reach 127.0.0.1; the API refuses it as an endpoint
		fmt.Sprintf("--secure-port=%d", e.apiServer),
		"--tls-cert-file="+pki("apiserver.crt"),
		"--tls-private-key-file="+pki("apiserver.key"),
		"--client-ca-file="+pki("ca.crt"),
		"--requestheader-client-ca-file="+pki("front-proxy/ca.crt"),
		"--requestheader-allowed-names="+frontProxyUser,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+pki("front-proxy/client.crt"),
		"--proxy-client-key-file="+pki("front-proxy/client.key"),
		"--anonymous-auth=false",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+pki("service-accounts.pub"),
		"--service-account-signing-key-file="+pki("service-accounts.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--max-requests-inflight=4000", // every node of the lab is served by one KWOK: a few very busy clients
		"--max-mutating-requests-inflight=2000",
	)
}

func (l Lab) controllerManager(e endpoints) program {
	pki := func(name string) string { return l.path("pki", name) }
	config := l.path("config", "controller-manager.kubeconfig")
	return l.program(progController, e.controller,
		"--kubeconfig="+config,
		"--authentication-kubeconfig="+config,
		"--authorization-kubeconfig="+config,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", e.controller),
		"--tls-cert-file="+pki("controller-manager-serving.crt"),
		"--tls-private-key-file="+pki("controller-manager-serving.key"),
		"--leader-elect=false", // there is one; after a crash it need not wait for its own old lease
		"--use-service-account-credentials",
		"--root-ca-file="+pki("ca.crt"),
		"--service-account-private-key-file="+pki("service-accounts.key"),
		"--cluster-signing-cert-file="+pki("ca.crt"),
		"--cluster-signing-key-file="+pki("ca.key"),
		"--kube-api-qps=1000", "--kube-api-burst=2000",
		"--flex-volume-plugin-dir="+l.path("config", "flexvolume"), // its default is made, as root, under /usr/libexec
	)
}

func (l Lab) scheduler(e endpoints) program {
	pki := func(name string) string { return l.path("pki", name) }
	config := l.path("config", "scheduler.kubeconfig")
	return l.program(progScheduler, e.scheduler,
		"--config="+l.path("config", "scheduler.yaml"),
		"--feature-gates=NominatedNodeNameForExpectation=false", // as manifests/scheduler/deployment.yaml has it
		"--authentication-kubeconfig="+config,
		"--authorization-kubeconfig="+config,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", e.scheduler),
		"--tls-cert-file="+pki("scheduler-serving.crt"),
		"--tls-private-key-file="+pki("scheduler-serving.key"),
	)
}

func (l Lab) kwok() program {
	return l.program(progKwok, 0,
		"--kubeconfig="+l.path("config", "kwok.kubeconfig"),
		"--config="+l.path("config", "kwok.yaml"),
		"--manage-nodes-with-annotation-selector="+kwokAnnotation+"="+kwokAnnotationValue,
		"--cidr=10.244.0.0/16",
		"--node-lease-duration-seconds=40", // a kubelet's
	)
}
