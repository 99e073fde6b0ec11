// SPDX-License-Identifier: Apache-2.0

// Package faults breaks things around the scheduler on a real API server: it kills it at chosen steps, pauses it, loses
// its replies. The judge, which reads only the API, says whether any promise was broken.
//
// A sample runs with make test; FROND_FULL=1 runs all of it. Every test prints its seed; FROND_SEED repeats it.
package faults

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/frond-scheduler/frond/test/faultproxy"
	"github.com/frond-scheduler/frond/test/harness"
	"github.com/frond-scheduler/frond/test/judge"
)

var lab *harness.Lab

func TestMain(m *testing.M) {
	harness.MainAlone(m, func(started *harness.Lab) { lab = started })
}

// healing is how long a gang may be half-bound once the scheduler can work again, and how long one that fits may take.
const healing = 30 * time.Second

// settling is how long everything may take to be at rest after a fault, locks included.
const settling = 40 * time.Second

func full() bool { return os.Getenv("FROND_FULL") != "" }

// either is the first in a sample and the second in a full run.
func either[T any](sample, all T) T {
	if full() {
		return all
	}
	return sample
}

// seeded prints the seed of a test.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("FROND_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FROND_SEED: %v", err)
		}
	}
	t.Logf("FROND_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// watch starts a judge.
func watch(t *testing.T) *judge.Judge {
	t.Helper()
	j, err := judge.Watch(t.Context(), lab.Client, judge.Rules{Profiles: []string{harness.Profile}, Locks: true})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// submit tells the judge of a Job and creates it.
func submit(t *testing.T, j *judge.Judge, ns string, g harness.Gang, within time.Duration) {
	t.Helper()
	j.Expect(judge.Gang{ID: ns + "/" + g.Name, Size: int(g.Pods), Required: true, Within: within})
	lab.Submit(t, ns, g)
}

// verdict waits for rest and fails the test for everything that the judge has found.
func verdict(t *testing.T, j *judge.Judge, limit time.Duration) {
	t.Helper()
	const enough = 20
	found := j.Verdict(limit)
	for _, violation := range found[:min(len(found), enough)] {
		t.Error(violation)
	}
	if len(found) > enough {
		t.Errorf("and %d more", len(found)-enough)
	}
	t.Logf("the judge saw %d changes", j.Events())
}

// proxied starts a proxy to the API server. Leader election is spared: losing the lease is another test.
func proxied(t *testing.T, seed uint64, lease string) *faultproxy.Proxy {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(lab.Config.CAData) {
		t.Fatal("the lab's kubeconfig holds no certificate authority")
	}
	token, err := lab.SchedulerToken()
	if err != nil {
		t.Fatal(err)
	}
	authority := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	proxy, err := faultproxy.Start(lab.Config.Host, authority, token, seed, func(r *http.Request) bool {
		return lease != "" && strings.HasSuffix(r.URL.Path, "/leases/"+lease)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy
}

// randomGang is one of many on a cluster that they share: 2 to 16 pods, in a sample to 8, most of them of whole nodes.
func randomGang(random *rand.Rand, number int) harness.Gang {
	sizes := []int32{2, 2, 2, 3, 4, 4, 5, 8, 12, 16}
	g := harness.Gang{Name: fmt.Sprintf("gang-%d", number), Pods: min(sizes[random.IntN(len(sizes))], either[int32](8, 16)), GPUs: 8, RunSeconds: 1}
	if random.IntN(4) == 0 {
		g.GPUs = []int64{1, 2, 4}[random.IntN(3)]
	}
	return g
}
