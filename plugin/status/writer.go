// SPDX-License-Identifier: Apache-2.0

// Package status writes what became of claims, groups and live configuration into the status of their objects, where
// users look. It owns when and how often that is written: the newest state of an object wins, an object is written at
// most once in 200 ms, its last state is always written, and nothing is written that is there already. It never decides
// a phase, and never holds its callers up.
package status

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	pause       = 200 * time.Millisecond // between two writes of one object
	firstRetry  = 200 * time.Millisecond
	lastRetry   = 30 * time.Second
	closedPause = 30 * time.Second // before a kind is asked for again that cannot be written
	patience    = 10 * time.Second // with one write
)

// Writer writes states. Only the leader should have states to write; two leaders do no harm but write twice.
type Writer struct {
	client dynamic.Interface
	now    func() time.Time
	queue  workqueue.TypedRateLimitingInterface[key]

	mu      sync.Mutex
	entries map[key]*entry
	closed  map[schema.GroupVersionResource]time.Time // kinds that cannot be written before then
}

// key is one object, not one name: what is said about a deleted claim never takes the place of what is said about the
// one that was made after it.
type key struct {
	resource  schema.GroupVersionResource
	namespace string
	name      string
	uid       types.UID
}

// entry is an object with something to write, or one that was written less than a pause ago. Its key is in the queue,
// or in a worker's hands, for as long as the entry exists.
type entry struct {
	state state
	dirty bool // state is not written yet
}

// state is what an object is to say.
type state interface {
	render(object *unstructured.Unstructured, now time.Time) (any, error)
}

// New makes a writer. States are kept from the start and written once Run runs.
func New(client dynamic.Interface, now func() time.Time) *Writer {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstRetry, lastRetry)
	return &Writer{
		client: client, now: now, queue: workqueue.NewTypedRateLimitingQueue(limiter),
		entries: map[key]*entry{}, closed: map[schema.GroupVersionResource]time.Time{},
	}
}

// Run writes until the context ends. What is not written by then is the next leader's to say: every state can be told
// anew from pods and objects.
func (w *Writer) Run(ctx context.Context, workers int) {
	logger := klog.FromContext(ctx)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for {
				k, ended := w.queue.Get()
				if ended {
					return
				}
				w.step(ctx, klog.LoggerWithValues(logger, "resource", k.resource.Resource, "object", klog.KRef(k.namespace, k.name)), k)
				w.queue.Done(k)
			}
		})
	}
	<-ctx.Done()
	w.queue.ShutDown()
	running.Wait()
}

func (w *Writer) put(k key, s state) {
	if k.uid == "" || k.name == "" {
		klog.Background().Error(nil, "A status without the name and uid of its object is not written", "resource", k.resource.Resource, "object", klog.KRef(k.namespace, k.name))
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.entries[k]; e != nil {
		e.state, e.dirty = s, true // its key comes round anyway
		return
	}
	w.entries[k] = &entry{state: s, dirty: true}
	w.queue.Add(k)
}

// step writes one object, or forgets it when there was nothing to write for a pause.
func (w *Writer) step(ctx context.Context, logger klog.Logger, k key) {
	s, wait := w.take(k)
	if s == nil {
		if wait > 0 {
			w.queue.AddAfter(k, wait)
		}
		return
	}
	err := w.write(ctx, k, s)
	switch {
	case err == nil:
		w.queue.Forget(k)
		w.queue.AddAfter(k, pause)
	case errors.Is(err, errGone):
		w.drop(k)
	case errors.Is(err, errRefused):
		logger.Error(err, "A status is not written")
		w.queue.Forget(k)
		w.queue.AddAfter(k, pause)
	case errors.Is(err, errClosed):
		w.putBack(k)
		if w.close(k.resource) && apierrors.IsForbidden(err) { // not served is nothing to talk about
			logger.Error(err, "The scheduler may not read this kind; its status is written later")
		}
		w.queue.AddAfter(k, closedPause)
	default:
		if w.queue.NumRequeues(k) == 0 && ctx.Err() == nil {
			logger.Error(err, "Status not written; trying again")
		}
		w.putBack(k)
		w.queue.AddRateLimited(k)
	}
}

// take is the state to write now; nil: none, and the key comes round after wait, or is forgotten if that is 0.
func (w *Writer) take(k key) (s state, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entries[k]
	if !e.dirty {
		delete(w.entries, k)
		return nil, 0
	}
	if wait := w.closed[k.resource].Sub(w.now()); wait > 0 {
		return nil, wait
	}
	e.dirty = false
	return e.state, 0
}

// putBack: what was taken is still to be written, or what has come since.
func (w *Writer) putBack(k key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entries[k].dirty = true
}

func (w *Writer) drop(k key) {
	w.queue.Forget(k)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.entries, k)
}

// close keeps all objects of a kind waiting, so that thousands of them do not ask one by one. It says whether the kind
// was open.
func (w *Writer) close(resource schema.GroupVersionResource) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	open := !w.closed[resource].After(now)
	w.closed[resource] = now.Add(closedPause)
	return open
}
