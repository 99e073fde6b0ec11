// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// api is a server that counts what reaches it and streams a line every 10 ms to watches.
func api(t *testing.T) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	var writes atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isWrite(r) {
			body, _ := io.ReadAll(r.Body)
			writes.Add(1)
			fmt.Fprintf(w, "%s as %s", body, r.Header.Get("Authorization"))
			return
		}
		for isWatch(r) && r.Context().Err() == nil {
			fmt.Fprintln(w, "event")
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	}))
	t.Cleanup(server.Close)
	return server, &writes
}

func start(t *testing.T, server *httptest.Server, spare func(*http.Request) bool) *Proxy {
	t.Helper()
	p, err := Start(server.URL, nil, "me", 1, spare)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func post(p *Proxy, path string) (*http.Response, string, error) {
	request, err := http.NewRequest(http.MethodPost, p.Address()+path, strings.NewReader("bind"))
	if err != nil {
		return nil, "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer, string(body), err
}

func TestFaultlessRequestsPassWithTheToken(t *testing.T) {
	server, _ := api(t)
	p := start(t, server, nil)
	if _, body, err := post(p, "/"); err != nil || body != "bind as Bearer me" {
		t.Errorf("%q, %v", body, err)
	}
}

func TestDroppedRepliesAreCarriedOut(t *testing.T) {
	server, writes := api(t)
	p := start(t, server, nil)
	p.Set(Faults{DropReply: 1})
	if _, body, err := post(p, "/"); err == nil {
		t.Errorf("there was a reply: %q", body)
	}
	if writes.Load() != 1 || p.Counts().DropReply != 1 {
		t.Errorf("%d writes reached the server, counts %+v", writes.Load(), p.Counts())
	}
}

func TestRefusedWritesAreNotCarriedOut(t *testing.T) {
	server, writes := api(t)
	p := start(t, server, nil)
	for _, c := range []struct {
		faults Faults
		path   string
		code   int
	}{{Faults{Conflict: 1}, "/", 409}, {Faults{TooMany: 1}, "/", 429}, {Faults{Error: 1}, "/", 500}, {Faults{Forbidden: 1}, "/pods/a/binding", 403}} {
		p.Set(c.faults)
		answer, body, err := post(p, c.path)
		var status struct{ Code int }
		if err != nil || answer.StatusCode != c.code || json.Unmarshal([]byte(body), &status) != nil || status.Code != c.code {
			t.Errorf("want %d: %q, %v", c.code, body, err)
		}
		if retry := err == nil && answer.Header.Get("Retry-After") != ""; retry != (c.code == 429) {
			t.Errorf("%d: Retry-After: %t", c.code, retry)
		}
	}
	if writes.Load() != 0 {
		t.Errorf("%d writes reached the server", writes.Load())
	}
	if c := p.Counts(); c.Conflict != 1 || c.TooMany != 1 || c.Error != 1 || c.Forbidden != 1 || c.Injected() != 4 {
		t.Errorf("counts %+v", c)
	}
}

func TestSparedRequestsPass(t *testing.T) {
	server, _ := api(t)
	p := start(t, server, func(r *http.Request) bool { return r.URL.Path == "/leader" })
	p.Set(Faults{Error: 1})
	if answer, _, err := post(p, "/leader"); err != nil || answer.StatusCode != 200 {
		t.Errorf("spared: %v, %v", answer, err)
	}
	if answer, _, err := post(p, "/other"); err != nil || answer.StatusCode != 500 {
		t.Errorf("not spared: %v, %v", answer, err)
	}
	p.Set(Faults{Down: true})
	if _, _, err := post(p, "/leader"); err == nil {
		t.Error("there was a reply while all is down")
	}
}

func TestRequestsAreDelayed(t *testing.T) {
	server, writes := api(t)
	p := start(t, server, nil)
	p.Set(Faults{Delayed: 1, Delay: 50 * time.Millisecond})
	begin := time.Now()
	for range 10 {
		if _, _, err := post(p, "/"); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begin); took < 50*time.Millisecond || p.Counts().Delayed != 10 || writes.Load() != 10 {
		t.Errorf("ten requests took %s, counts %+v", took, p.Counts())
	}
}

// Bindings come one at a time: a client that dies of the first answer leaves the others undone.
func TestBindingsPassOneByOne(t *testing.T) {
	server, writes := api(t)
	p := start(t, server, nil)
	p.Set(Faults{Apart: 100 * time.Millisecond})
	client := &http.Client{Transport: &http.Transport{}}
	ctx, die := context.WithCancel(t.Context())
	defer die()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.Address()+"/pods/a/binding", strings.NewReader("bind"))
			if err != nil {
				t.Error(err)
				return
			}
			if answer, err := client.Do(request); err == nil {
				answer.Body.Close()
				die()
			}
		})
	}
	group.Wait()
	time.Sleep(time.Second)
	if n := writes.Load(); n == 0 || n > 3 { // on a busy machine it may take a while to die
		t.Errorf("%d bindings were carried out, want 1", n)
	}
}

func TestWatchesAreCut(t *testing.T) {
	server, _ := api(t)
	p := start(t, server, nil)
	events := func() (int, error) {
		answer, err := http.Get(p.Address() + "/pods?watch=true")
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		count, lines := 0, bufio.NewScanner(answer.Body)
		for lines.Scan() {
			count++
		}
		return count, lines.Err()
	}
	p.Set(Faults{WatchLife: 200 * time.Millisecond})
	if _, err := events(); err == nil || p.Counts().Watch != 1 {
		t.Errorf("the watch ended with %v, counts %+v", err, p.Counts())
	}
	p.Set(Faults{})
	time.AfterFunc(100*time.Millisecond, func() { p.Set(Faults{Down: true}) })
	if count, err := events(); err == nil || count == 0 {
		t.Errorf("the watch ended with %v after %d events", err, count)
	}
}

// The same seed draws the same faults for the same requests.
func TestSeedDecides(t *testing.T) {
	server, _ := api(t)
	run := func() string {
		p := start(t, server, nil)
		p.Set(Faults{Conflict: 0.3, Error: 0.3})
		var codes strings.Builder
		for range 20 {
			answer, _, err := post(p, "/")
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(&codes, answer.StatusCode, " ")
		}
		return codes.String()
	}
	if first, second := run(), run(); first != second || !strings.Contains(first, "200") || !strings.Contains(first, "409") {
		t.Errorf("%s\n%s", first, second)
	}
}
