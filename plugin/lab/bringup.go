// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	api "k8s.io/client-go/tools/clientcmd/api"

	"github.com/frond-scheduler/frond/manifests"
)

const pollEvery = 100 * time.Millisecond

// bringUp is the way from an empty folder to a cluster with all nodes Ready, in the order below.
type bringUp struct {
	lab      Lab
	at       endpoints
	nodes    []FabricNode
	fabric   string // text of the fabric file; "": none
	children *supervisor
	report   *reporter

	client   *kubernetes.Clientset
	statuses []map[string]any // of the nodes that stand for machines
	reports  *reports         // nil: no node does
}

func (b *bringUp) run(ctx context.Context) error {
	err := together(ctx, b.startControlPlane, func(ctx context.Context) error {
		machines := 0
		for _, n := range b.nodes {
			if n.Machine != "" {
				machines++
			}
		}
		if machines == 0 {
			return nil
		}
		return b.report.step(fmt.Sprintf("%d machines probed", machines), func() (err error) {
			b.statuses, err = b.lab.probeAll(ctx, b.nodes)
			return err
		})
	})
	if err != nil {
		return err
	}
	// From here nothing depends on the order: programs start while the nodes are written.
	b.children.start(b.lab.controllerManager(b.at))
	b.children.start(b.lab.scheduler(b.at))
	b.children.start(b.lab.kwok())
	return together(ctx,
		func(ctx context.Context) error {
			return b.report.step(progController, func() error { return b.awaitServer(ctx, progController, b.at.controller, "/healthz") })
		},
		func(ctx context.Context) error {
			return b.report.step(progScheduler, func() error { return b.awaitServer(ctx, progScheduler, b.at.scheduler, "/readyz") })
		},
		func(ctx context.Context) error {
			return b.report.step(fmt.Sprintf("%d nodes Ready", len(b.nodes)), func() error { return b.startNodes(ctx) })
		},
	)
}

func (b *bringUp) startControlPlane(ctx context.Context) error {
	for _, step := range []struct {
		name string
		work func(context.Context) error
	}{
		{"certificates", b.prepare},
		{progEtcd, b.startEtcd},
		{progAPIServer, b.startAPIServer},
		{"manifests", b.applyManifests},
	} {
		if err := b.report.step(step.name, func() error { return step.work(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes certificates, kubeconfigs and configurations.
func (b *bringUp) prepare(context.Context) error {
	if err := b.lab.makeCertificates(); err != nil {
		return err
	}
	if err := os.MkdirAll(b.lab.path("config"), 0o700); err != nil {
		return fmt.Errorf("make the folder for configurations: %w", err)
	}
	server := local(b.at.apiServer)
	for user, path := range map[string]string{
		"admin":              b.lab.Kubeconfig(),
		"controller-manager": b.lab.path("config", "controller-manager.kubeconfig"),
		"kwok":               b.lab.path("config", "kwok.kubeconfig"),
	} {
		info, err := b.lab.certUser(user)
		if err != nil {
			return err
		}
		if err := b.lab.writeKubeconfig(path, server, info); err != nil {
			return err
		}
	}
	if err := b.writeKwokConfig(); err != nil {
		return err
	}
	if err := b.lab.writeSchedulerConfig(b.fabric); err != nil {
		return err
	}
	var err error
	b.client, err = b.lab.adminClient()
	if err != nil {
		return err
	}
	return b.children.board.update(func(s *State) { s.Server = server })
}

// writeKwokConfig joins the stages into the one file that KWOK is given.
func (b *bringUp) writeKwokConfig() error {
	var all bytes.Buffer
	paths, err := fs.Glob(manifests.Files, "kwok/*.yaml")
	if err != nil {
		return fmt.Errorf("find the stages of KWOK: %w", err)
	}
	for _, path := range paths {
		data, err := fs.ReadFile(manifests.Files, path)
		if err != nil {
			return fmt.Errorf("read a stage of KWOK: %w", err)
		}
		all.WriteString("---\n")
		all.Write(data)
	}
	if err := writeFile(b.lab.path("config", "kwok.yaml"), all.Bytes()); err != nil {
		return fmt.Errorf("write the configuration of KWOK: %w", err)
	}
	return nil
}

func (b *bringUp) startEtcd(ctx context.Context) error {
	b.children.start(b.lab.etcd(b.at))
	pair, err := tls.LoadX509KeyPair(b.lab.path("pki/etcd/apiserver.crt"), b.lab.path("pki/etcd/apiserver.key"))
	if err != nil {
		return fmt.Errorf("read the certificate for etcd: %w", err)
	}
	client, err := httpsClient(b.lab.path("pki/etcd/ca.crt"), pair)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return b.await(ctx, progEtcd, pollEvery, func() error { return get(ctx, client, local(b.at.etcd)+"/health") })
}

func (b *bringUp) startAPIServer(ctx context.Context) error {
	b.children.start(b.lab.apiServer(b.at))
	return b.await(ctx, progAPIServer, pollEvery, func() error {
		return b.client.RESTClient().Get().AbsPath("/readyz").Timeout(2 * time.Second).Do(ctx).Error()
	})
}

// applyManifests installs what a real cluster would get from `kubectl apply -k manifests`, but for the Deployment: here
// the scheduler is a program beside the others. It gets the same account with the same rights.
func (b *bringUp) applyManifests(ctx context.Context) error {
	config, err := b.lab.adminConfig()
	if err != nil {
		return err
	}
	to, err := newApplier(config)
	if err != nil {
		return err
	}
	for _, pattern := range []string{"namespace.yaml", "crds/*.yaml", "rbac/*.yaml", "policy/*.yaml", "agent/rbac.yaml", "agent/policy.yaml", "lab/*.yaml"} {
		paths, err := fs.Glob(manifests.Files, pattern)
		if err != nil {
			return fmt.Errorf("find manifests: %w", err)
		}
		for _, path := range paths {
			objects, err := readObjects(manifests.Files, path)
			if err != nil {
				return err
			}
			for _, object := range objects {
				if err := to.apply(ctx, object, manifests.Namespace); err != nil {
					return err
				}
			}
		}
	}
	if err := b.awaitDefinitions(ctx, to); err != nil {
		return err
	}
	return b.writeSchedulerToken(ctx)
}

// awaitDefinitions waits until the API server serves our kinds: a watch on one that it does not know yet would fail.
func (b *bringUp) awaitDefinitions(ctx context.Context, to *applier) error {
	kind := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	return b.await(ctx, progAPIServer, pollEvery, func() error {
		list, err := to.client.Resource(kind).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if !hasCondition(&list.Items[i], "Established") {
				return fmt.Errorf("%s is not established", list.Items[i].GetName())
			}
		}
		return nil
	})
}

func hasCondition(object *unstructured.Unstructured, name string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		condition, ok := entry.(map[string]any)
		if ok && condition["type"] == name && condition["status"] == "True" {
			return true
		}
	}
	return false
}

// writeSchedulerToken lets the scheduler run as its own ServiceAccount, as its pod would.
func (b *bringUp) writeSchedulerToken(ctx context.Context) error {
	seconds := int64(certLife.Seconds())
	request := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := b.client.CoreV1().ServiceAccounts(manifests.Namespace).
		CreateToken(ctx, manifests.SchedulerAccount, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make the scheduler's token: %w", err)
	}
	user := &api.AuthInfo{Token: token.Status.Token}
	return b.lab.writeKubeconfig(b.lab.path("config", "scheduler.kubeconfig"), local(b.at.apiServer), user)
}

// awaitServer waits for a program that serves TLS with a certificate of ours.
func (b *bringUp) awaitServer(ctx context.Context, name string, port int, path string) error {
	client, err := httpsClient(b.lab.path("pki", "ca.crt"))
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return b.await(ctx, name, pollEvery, func() error { return get(ctx, client, local(port)+path) })
}

// startNodes writes the nodes and waits until KWOK and the controller-manager have made all of them Ready.
func (b *bringUp) startNodes(ctx context.Context) error {
	if err := createNodes(ctx, b.client, b.nodes); err != nil {
		return err
	}
	if err := createPlaceholders(ctx, b.client, b.nodes); err != nil {
		return err
	}
	if err := b.startReports(ctx); err != nil {
		return err
	}
	// A list of thousands costs the API server more than the nodes' own reports: ask less often, the more there are.
	every := max(pollEvery, time.Duration(len(b.nodes))*time.Millisecond)
	return b.await(ctx, progKwok, every, func() error {
		list, err := b.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		if ready := readyNodes(list.Items); ready < len(b.nodes) {
			return fmt.Errorf("%d of %d nodes are Ready", ready, len(b.nodes))
		}
		return nil
	})
}

// startReports has every machine reported, by an agent or by the lab.
func (b *bringUp) startReports(ctx context.Context) error {
	if b.statuses == nil {
		return nil
	}
	var err error
	if b.reports, err = newReports(b.lab, b.client, b.nodes, b.statuses); err != nil {
		return err
	}
	return b.report.step("reports", func() error {
		if err := b.reports.writeAll(ctx); err != nil {
			return err
		}
		return b.startAgents(ctx)
	})
}

// await asks until the answer is nil. When the time is up first, that is the program's failure, with its last answer.
func (b *bringUp) await(ctx context.Context, program string, every time.Duration, ask func() error) error {
	for {
		err := ask()
		if err == nil {
			return nil
		}
		ended := pause(ctx, every)
		if errors.Is(ended, errTooLate) {
			return &programFailed{name: program, log: b.lab.LogFile(program), how: fmt.Sprintf("%v; last answer: %s", ended, brief(err))}
		}
		if ended != nil {
			return ended
		}
	}
}

// brief shortens an answer to what is wrong: health checks list everything that is fine, too.
func brief(err error) string {
	const enough = 300
	var bad []string
	for line := range strings.SplitSeq(strings.ReplaceAll(err.Error(), `\n`, "\n"), "\n") {
		if at := strings.Index(line, "[-]"); at >= 0 {
			bad = append(bad, line[at+len("[-]"):])
		}
	}
	text := strings.Join(bad, ", ")
	if text == "" {
		text = err.Error()
	}
	if len(text) > enough {
		text = text[:enough] + "…"
	}
	return text
}

// together runs all of work at once and returns the first error, after all have ended.
func together(ctx context.Context, work ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for _, one := range work {
		group.Go(func() {
			if err := one(ctx); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

func httpsClient(authority string, pairs ...tls.Certificate) (*http.Client, error) {
	data, err := os.ReadFile(authority)
	if err != nil {
		return nil, fmt.Errorf("read a certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s holds no certificate", authority)
	}
	return &http.Client{
		Timeout:   2 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: pairs, MinVersion: tls.VersionTLS12}},
	}, nil
}

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 4096))
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, answer.Status, bytes.TrimSpace(body))
	}
	return nil
}
