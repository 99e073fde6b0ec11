// SPDX-License-Identifier: Apache-2.0

// Package faultproxy stands between a client and an API server and does what networks and busy servers do: it loses
// replies to writes that were carried out, answers 409, 429 or 500 instead of passing a write on, holds requests up, cuts
// watches off, or is not there at all. What it does is drawn from a seed and can be changed at any time.
//
// It serves plain HTTP on the loopback and shows the API server the client's token itself: clients send none over plain
// HTTP, and so need nothing but its address.
package faultproxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Faults are how often what happens: shares of 1, each drawn for itself, in this order.
type Faults struct {
	Conflict  float64 // writes answered 409 and not passed on
	TooMany   float64 // writes answered 429 with Retry-After, not passed on
	Error     float64 // writes answered 500, not passed on
	Forbidden float64 // bindings answered 403, not passed on
	DropReply float64 // writes carried out, and the connection closed instead of a reply
	Delayed   float64 // requests that wait, up to Delay
	Delay     time.Duration
	WatchLife time.Duration // watches end, without a word, after up to this long; 0: never
	Apart     time.Duration // bindings pass one at a time, this far apart; those of a client that has died meanwhile do not
	Down      bool          // connections are closed at once, watches too
}

// Counts are how often it happened.
type Counts struct {
	Requests, Writes                                               int
	Conflict, TooMany, Error, Forbidden, DropReply, Delayed, Watch int
}

// Injected is how many faults there were.
func (c Counts) Injected() int {
	return c.Conflict + c.TooMany + c.Error + c.Forbidden + c.DropReply + c.Delayed + c.Watch
}

// Proxy is a running one.
type Proxy struct {
	address string
	server  *http.Server
	pass    *httputil.ReverseProxy
	spare   func(*http.Request) bool
	turn    chan struct{} // holds one token, which the binding that passes has

	mu      sync.Mutex
	random  *rand.Rand
	faults  Faults
	counts  Counts
	watches map[int]func() bool // cuts one off; false: it had ended
	next    int
}

// Start serves until Close. Requests that spare says true for are passed on untouched, unless all is down; nil: none.
func Start(server string, authority *tls.Config, token string, seed uint64, spare func(*http.Request) bool) (*Proxy, error) {
	target, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("the API server's address: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if spare == nil {
		spare = func(*http.Request) bool { return false }
	}
	p := &Proxy{
		address: "http://" + listener.Addr().String(), spare: spare,
		random: rand.New(rand.NewPCG(seed, 0)), watches: map[int]func() bool{}, turn: make(chan struct{}, 1),
	}
	p.pass = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
		Transport:     &http.Transport{TLSClientConfig: authority, ForceAttemptHTTP2: true},
		FlushInterval: -1, // a watch's events go out at once
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

// Address of the proxy, as a kubeconfig has it.
func (p *Proxy) Address() string { return p.address }

// Close ends it and every connection.
func (p *Proxy) Close() { _ = p.server.Close() }

// Set changes what happens from now on.
func (p *Proxy) Set(faults Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = faults
	for _, cut := range p.watches {
		if faults.Down {
			cut()
		} else if faults.WatchLife > 0 {
			p.cutLater(cut)
		}
	}
}

// cutLater ends a watch after a while; one that has ended by then is not counted, and not hurt.
func (p *Proxy) cutLater(cut func() bool) {
	life := time.Duration(p.random.Int64N(int64(p.faults.WatchLife)) + 1)
	time.AfterFunc(life, func() {
		if cut() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.counts.Watch++
		}
	})
}

// Counts so far.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// verdict is what happens to one request.
type verdict struct {
	abort bool
	code  int // answered instead of being passed on
	drop  bool
	delay time.Duration
	apart time.Duration
}

func (p *Proxy) draw(request *http.Request) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Requests++
	var v verdict
	if p.faults.Down {
		v.abort = true
		return v
	}
	if p.spare(request) {
		return v
	}
	happens := func(share float64, count *int) bool {
		if share == 0 || p.random.Float64() >= share {
			return false
		}
		*count++
		return true
	}
	if isWrite(request) {
		p.counts.Writes++
		switch {
		case happens(p.faults.Conflict, &p.counts.Conflict):
			v.code = http.StatusConflict
		case happens(p.faults.TooMany, &p.counts.TooMany):
			v.code = http.StatusTooManyRequests
		case happens(p.faults.Error, &p.counts.Error):
			v.code = http.StatusInternalServerError
		case isBinding(request) && happens(p.faults.Forbidden, &p.counts.Forbidden):
			v.code = http.StatusForbidden
		case happens(p.faults.DropReply, &p.counts.DropReply):
			v.drop = true
		}
	}
	if p.faults.Delay > 0 && happens(p.faults.Delayed, &p.counts.Delayed) {
		v.delay = time.Duration(p.random.Int64N(int64(p.faults.Delay)) + 1)
	}
	if isBinding(request) {
		v.apart = p.faults.Apart
	}
	return v
}

func isWrite(request *http.Request) bool {
	return request.Method != http.MethodGet && request.Method != http.MethodHead && request.Method != http.MethodOptions
}

func isBinding(request *http.Request) bool { return strings.HasSuffix(request.URL.Path, "/binding") }

func isWatch(request *http.Request) bool {
	asked := request.URL.Query().Get("watch")
	return request.Method == http.MethodGet && (asked == "true" || asked == "1")
}

// ServeHTTP treats one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	v := p.draw(request)
	if v.abort {
		panic(http.ErrAbortHandler)
	}
	if v.delay > 0 {
		select {
		case <-time.After(v.delay):
		case <-request.Context().Done():
			return
		}
	}
	if v.apart > 0 {
		body, err := io.ReadAll(request.Body) // a server notices that its client is gone only once it has read all
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		p.turn <- struct{}{}
		defer func() {
			// In this time the client can have the answer, and die of it.
			time.AfterFunc(v.apart, func() { <-p.turn })
		}()
		if request.Context().Err() != nil {
			return
		}
	}
	switch {
	case v.code != 0:
		refuse(w, v.code)
	case v.drop:
		p.pass.ServeHTTP(&deaf{header: http.Header{}}, request)
		panic(http.ErrAbortHandler)
	case isWatch(request):
		p.watch(w, request)
	default:
		p.pass.ServeHTTP(w, request)
	}
}

// watch passes a watch on until it is cut off.
func (p *Proxy) watch(w http.ResponseWriter, request *http.Request) {
	ctx, cancel := context.WithCancel(request.Context())
	defer cancel()
	cut := func() bool {
		defer cancel()
		return ctx.Err() == nil
	}
	p.mu.Lock()
	id := p.next
	p.next++
	p.watches[id] = cut
	if p.faults.WatchLife > 0 && !p.spare(request) {
		p.cutLater(cut)
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watches, id)
	}()
	p.pass.ServeHTTP(w, request.WithContext(ctx))
	if ctx.Err() != nil && request.Context().Err() == nil {
		panic(http.ErrAbortHandler) // a connection that breaks, not a stream that ends
	}
}

// refuse answers as the API server would.
func refuse(w http.ResponseWriter, code int) {
	reason := map[int]string{
		http.StatusConflict: "Conflict", http.StatusTooManyRequests: "TooManyRequests", http.StatusInternalServerError: "InternalError",
		http.StatusForbidden: "Forbidden",
	}[code]
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"a fault of the test","reason":%q,"code":%d}`, reason, code)
}

// deaf takes a reply and tells nobody.
type deaf struct{ header http.Header }

func (d *deaf) Header() http.Header            { return d.header }
func (d *deaf) Write(data []byte) (int, error) { return len(data), nil }
func (d *deaf) WriteHeader(int)                {}
