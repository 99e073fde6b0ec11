// SPDX-License-Identifier: Apache-2.0

// Package liveconfig applies SchedulerConfig and TopologySchedulerConfig objects to a running scheduler. One object is
// in force at a time: the SchedulerConfig named default or, where there is none, the TopologySchedulerConfig named
// default. What its spec means, and whether it is any good, the engine says. Every object hears in its condition Applied
// what became of it; a bad one changes nothing.
package liveconfig

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/plugin/status"
)

// Reasons of the condition Applied.
const (
	ReasonApplied = "InForce"
	ReasonRefused = "Refused"
	ReasonNotUsed = "NotUsed"
)

// Sentences of the condition Applied.
const (
	messageApplied = "in force"
	messageKept    = "%v; the last good version of this object stays in force"
	messageNone    = "%v; what the scheduler was started with is in force"
	messageAlone   = "only the SchedulerConfig named default is applied or, where there is none, the TopologySchedulerConfig named default"
)

// Watcher keeps the engine's live configuration as the objects say. All its fields but changed and settled belong to the
// goroutine of Run.
type Watcher struct {
	apply   func(json []byte) error
	tell    func(status.ConfigState)
	kinds   []*kind // by precedence
	changed chan struct{}
	settled atomic.Bool

	tried   version // the one that was handed to the engine last; zero: none
	problem error   // what the engine said of it
	inForce types.UID
	told    map[types.UID]status.ConfigState
}

// version is one spec of one object.
type version struct {
	uid        types.UID
	generation int64
}

// New makes a watcher. apply hands a configuration to the engine, all of it or an error that says what is wrong: what
// the JSON does not name goes back to what the scheduler was started with. tell has a condition written.
func New(client dynamic.Interface, apply func(json []byte) error, tell func(status.ConfigState)) (*Watcher, error) {
	w := &Watcher{apply: apply, tell: tell, changed: make(chan struct{}, 1), told: map[types.UID]status.ConfigState{}}
	for _, resource := range []schema.GroupVersionResource{apis.SchedulerConfigs, apis.TopologySchedulerConfigs} {
		k, err := newKind(client, resource, w.signal)
		if err != nil {
			return nil, err
		}
		w.kinds = append(w.kinds, k)
	}
	return w, nil
}

// Run applies until the context ends.
func (w *Watcher) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, k := range w.kinds {
		running.Go(func() { k.run(ctx) })
	}
	for {
		select {
		case <-ctx.Done():
			running.Wait()
			return
		case <-w.changed:
			w.decide(klog.FromContext(ctx))
		}
	}
}

func (w *Watcher) signal() {
	select {
	case w.changed <- struct{}{}:
	default: // it will look at everything anyway
	}
}

// decide looks at all objects, applies the one that counts if that is news, and tells each what became of it.
func (w *Watcher) decide(logger klog.Logger) {
	for _, k := range w.kinds {
		if !k.known() {
			return // the one that counts may be among those
		}
	}
	objects := w.objects()
	winner := slices.IndexFunc(objects, func(o object) bool { return o.GetName() == apis.ConfigName })
	switch {
	case winner >= 0:
		w.use(logger, objects[winner])
	case w.tried != version{}:
		w.reset(logger)
		w.tried = version{}
	}
	told := make(map[types.UID]status.ConfigState, len(objects))
	for i, o := range objects {
		state := w.verdict(o, i == winner)
		if w.told[state.UID] != state {
			w.tell(state)
		}
		told[state.UID] = state
	}
	w.told = told
	w.settled.Store(true)
}

// Settled says whether what was there at the start has been applied or refused.
func (w *Watcher) Settled() bool { return w.settled.Load() }

type object struct {
	*unstructured.Unstructured
	resource schema.GroupVersionResource
}

// objects of all kinds, by precedence of their kind, then by name.
func (w *Watcher) objects() []object {
	var list []object
	for _, k := range w.kinds {
		for _, o := range k.objects() {
			list = append(list, object{o, k.resource})
		}
	}
	return list
}

// use hands the object to the engine unless it did so before.
func (w *Watcher) use(logger klog.Logger, o object) {
	current := version{uid: o.GetUID(), generation: o.GetGeneration()}
	if current == w.tried {
		return
	}
	w.tried = current
	text, err := configuration(o)
	if err == nil {
		err = w.apply(text)
	}
	w.problem = err
	if err == nil {
		w.inForce = current.uid
		logger.Info("Live configuration applied", "kind", o.GetKind(), "name", o.GetName(), "generation", current.generation, "configuration", string(text))
		return
	}
	logger.Error(err, "Live configuration refused", "kind", o.GetKind(), "name", o.GetName(), "generation", current.generation)
	if w.inForce != current.uid { // it is of an object that does not count any more
		w.reset(logger)
	}
}

// reset goes back to what the scheduler was started with.
func (w *Watcher) reset(logger klog.Logger) {
	if w.inForce == "" {
		return
	}
	w.inForce = ""
	if err := w.apply([]byte("{}")); err != nil {
		logger.Error(err, "Live configuration not taken back")
		return
	}
	logger.Info("Live configuration taken back; that of the start is in force")
}

// configuration is the spec as the engine reads it. What is in it is the engine's to judge.
func configuration(o object) ([]byte, error) {
	spec, found, err := unstructured.NestedMap(o.Object, "spec")
	if err != nil {
		return nil, fmt.Errorf("spec: must be an object: %w", err)
	}
	if !found {
		return []byte("{}"), nil
	}
	return json.Marshal(spec)
}

func (w *Watcher) verdict(o object, counts bool) status.ConfigState {
	state := status.ConfigState{
		Resource: o.resource, Name: o.GetName(), UID: o.GetUID(), Generation: o.GetGeneration(),
		Reason: ReasonNotUsed, Message: messageAlone,
	}
	switch {
	case counts && w.problem == nil:
		state.Applied, state.Reason, state.Message = true, ReasonApplied, messageApplied
	case counts && w.inForce == o.GetUID():
		state.Reason, state.Message = ReasonRefused, fmt.Sprintf(messageKept, w.problem)
	case counts:
		state.Reason, state.Message = ReasonRefused, fmt.Sprintf(messageNone, w.problem)
	}
	return state
}
