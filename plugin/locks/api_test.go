// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/frond-scheduler/frond/plugin/workload"
)

// fault is what happens to one call.
type fault int

const (
	none    fault = iota
	failed        // 500, nothing done
	dropped       // done, but the reply is lost
	late          // no reply, and done only when land is called
)

var errReset = errors.New("read tcp 127.0.0.1: connection reset by peer")

// api behaves as the API server does where locks rely on it: resource versions, preconditions, updates that change
// nothing, Bindings. The stock fake checks none of these.
type api struct {
	t  testing.TB
	mu sync.Mutex
	// fault decides about a call before it is carried out; nil: none fail.
	fault func(verb, resource, name string) fault

	version  int
	leases   map[string]*coordinationv1.Lease
	pods     map[string]*v1.Pod // by namespace/name
	nodes    map[string]bool
	history  []watch.Event
	watchers []*watcher
	landing  []func()
	calls    map[string]int // by "verb resource"
	doubles  []string       // GPUs that were bound twice: there must be none
}

func newAPI(t testing.TB) *api {
	return &api{t: t, version: 100, leases: map[string]*coordinationv1.Lease{}, pods: map[string]*v1.Pod{}, nodes: map[string]bool{}, calls: map[string]int{}}
}

func (a *api) client() *fake.Clientset {
	client := &fake.Clientset{}
	client.AddReactor("*", "*", a.react)
	client.AddWatchReactor("leases", a.watch)
	return client
}

func (a *api) next() string {
	a.version++
	return strconv.Itoa(a.version)
}

func (a *api) react(action clienttesting.Action) (bool, runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	verb, resource := action.GetVerb(), action.GetResource().Resource
	name := ""
	switch action := action.(type) {
	case clienttesting.CreateActionImpl:
		name = action.GetObject().(metav1.Object).GetName()
	case clienttesting.UpdateActionImpl:
		name = action.GetObject().(metav1.Object).GetName()
	case interface{ GetName() string }:
		name = action.GetName()
	}
	a.calls[verb+" "+resource]++
	kind := none
	if a.fault != nil {
		kind = a.fault(verb, resource, name)
	}
	switch kind {
	case failed:
		return true, nil, apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	case late:
		a.landing = append(a.landing, func() { _, _ = a.carryOut(action, resource, name) })
		return true, nil, errReset
	}
	object, err := a.carryOut(action, resource, name)
	if kind == dropped && (err == nil || verb != "get") {
		return true, nil, errReset
	}
	return true, object, err
}

// land lets calls arrive whose senders have given up.
func (a *api) land() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, call := range a.landing {
		call()
	}
	a.landing = nil
}

func (a *api) carryOut(action clienttesting.Action, resource, name string) (runtime.Object, error) {
	switch resource {
	case "leases":
		return a.lease(action, name)
	case "pods":
		return a.pod(action, name)
	case "nodes":
		if !a.nodes[name] {
			return nil, apierrors.NewNotFound(v1.Resource("nodes"), name)
		}
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
	}
	return nil, fmt.Errorf("the fake has no %s", resource)
}

func (a *api) lease(action clienttesting.Action, name string) (runtime.Object, error) {
	resource := coordinationv1.Resource("leases")
	old := a.leases[name]
	switch action := action.(type) {
	case clienttesting.GetActionImpl:
		if old == nil {
			return nil, apierrors.NewNotFound(resource, name)
		}
		return old.DeepCopy(), nil
	case clienttesting.ListActionImpl:
		list := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(a.version)}}
		for _, lease := range a.leases {
			if action.ListRestrictions.Labels.Matches(labels.Set(lease.Labels)) {
				list.Items = append(list.Items, *lease.DeepCopy())
			}
		}
		return list, nil
	case clienttesting.CreateActionImpl:
		if old != nil {
			return nil, apierrors.NewAlreadyExists(resource, name)
		}
		lease := action.GetObject().(*coordinationv1.Lease).DeepCopy()
		lease.UID, lease.ResourceVersion = uuid.NewUUID(), a.next()
		return a.store(watch.Added, lease), nil
	case clienttesting.UpdateActionImpl:
		lease := action.GetObject().(*coordinationv1.Lease).DeepCopy()
		if old == nil {
			return nil, apierrors.NewNotFound(resource, name)
		}
		if lease.ResourceVersion != old.ResourceVersion {
			return nil, apierrors.NewConflict(resource, name, errors.New("the object has been modified"))
		}
		if fmt.Sprint(lease.Annotations, lease.Labels, *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions) ==
			fmt.Sprint(old.Annotations, old.Labels, deref(old.Spec.HolderIdentity), deref(old.Spec.LeaseTransitions)) {
			return old.DeepCopy(), nil
		}
		lease.ResourceVersion = a.next()
		return a.store(watch.Modified, lease), nil
	case clienttesting.DeleteActionImpl:
		if old == nil {
			return nil, apierrors.NewNotFound(resource, name)
		}
		pre := action.DeleteOptions.Preconditions
		if pre == nil || *pre.UID != old.UID || *pre.ResourceVersion != old.ResourceVersion {
			return nil, apierrors.NewConflict(resource, name, errors.New("precondition failed"))
		}
		delete(a.leases, name)
		gone := old.DeepCopy()
		gone.ResourceVersion = a.next()
		a.tell(watch.Event{Type: watch.Deleted, Object: gone})
		return nil, nil
	}
	return nil, fmt.Errorf("the fake cannot %s leases", action.GetVerb())
}

func deref[T any](p *T) (zero T) {
	if p == nil {
		return zero
	}
	return *p
}

func (a *api) store(kind watch.EventType, lease *coordinationv1.Lease) *coordinationv1.Lease {
	a.leases[lease.Name] = lease
	a.tell(watch.Event{Type: kind, Object: lease.DeepCopy()})
	return lease.DeepCopy()
}

func (a *api) tell(event watch.Event) {
	a.history = append(a.history, event)
	for _, w := range a.watchers {
		w.tell(event)
	}
}

func (a *api) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := action.(clienttesting.WatchActionImpl)
	from, _ := strconv.Atoi(asked.ListOptions.ResourceVersion)
	w := &watcher{a: a, wanted: asked.WatchRestrictions.Labels, events: make(chan watch.Event, 100_000)}
	for _, event := range a.history {
		if at, _ := strconv.Atoi(event.Object.(metav1.Object).GetResourceVersion()); at > from {
			w.tell(event)
		}
	}
	a.watchers = append(a.watchers, w)
	return true, w, nil
}

// watcher may be stopped while events are told.
type watcher struct {
	a      *api
	wanted labels.Selector
	events chan watch.Event
}

func (w *watcher) tell(event watch.Event) {
	if w.wanted.Matches(labels.Set(event.Object.(metav1.Object).GetLabels())) {
		w.events <- watch.Event{Type: event.Type, Object: event.Object.DeepCopyObject()}
	}
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

func (w *watcher) Stop() {
	w.a.mu.Lock()
	defer w.a.mu.Unlock()
	if i := slices.Index(w.a.watchers, w); i >= 0 {
		w.a.watchers = slices.Delete(w.a.watchers, i, i+1)
		close(w.events)
	}
}

func (a *api) pod(action clienttesting.Action, name string) (runtime.Object, error) {
	if _, list := action.(clienttesting.ListActionImpl); list {
		all := &v1.PodList{}
		for _, pod := range a.pods {
			all.Items = append(all.Items, *pod.DeepCopy())
		}
		return all, nil
	}
	pod := a.pods[action.GetNamespace()+"/"+name]
	if pod == nil {
		return nil, apierrors.NewNotFound(v1.Resource("pods"), name)
	}
	if patch, ok := action.(clienttesting.PatchActionImpl); ok {
		var change struct {
			Metadata struct{ UID types.UID }
			Status   struct{ Conditions []v1.PodCondition }
		}
		if err := json.Unmarshal(patch.Patch, &change); err != nil || patch.Subresource != "status" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("patch of %q: %v", patch.Subresource, err))
		}
		if change.Metadata.UID != pod.UID {
			return nil, apierrors.NewInvalid(v1.SchemeGroupVersion.WithKind("Pod").GroupKind(), name,
				field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), change.Metadata.UID, "field is immutable")})
		}
		pod.Status.Conditions, pod.ResourceVersion = change.Status.Conditions, a.next()
	}
	return pod.DeepCopy(), nil
}

// ---- what tests do besides -------------------------------------------------------------------------------------------------

func (a *api) addPod(name string) *v1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: uuid.NewUUID(), ResourceVersion: a.next()}}
	pod.Status.Phase = v1.PodPending
	a.pods["ml/"+name] = pod
	return pod.DeepCopy()
}

func (a *api) getPod(name string) *v1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pods["ml/"+name].DeepCopy()
}

// replacePod ends a pod and makes another of the same name, as a Job's controller might.
func (a *api) replacePod(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fresh := a.pods["ml/"+name].DeepCopy()
	fresh.UID, fresh.ResourceVersion, fresh.Spec.NodeName, fresh.Annotations = uuid.NewUUID(), a.next(), "", nil
	fresh.Status = v1.PodStatus{Phase: v1.PodPending}
	a.pods["ml/"+name] = fresh
}

func (a *api) dropPod(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.pods, "ml/"+name)
}

func (a *api) changePod(name string, change func(*v1.Pod)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if pod := a.pods["ml/"+name]; pod != nil {
		change(pod)
		pod.ResourceVersion = a.next()
	}
}

// bind is a Binding with uid and resource version as preconditions. It notes GPUs that get a second living pod.
func (a *api) bind(pod *v1.Pod, node string, gpus ...string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	live := a.pods["ml/"+pod.Name]
	switch {
	case live == nil:
		return apierrors.NewNotFound(v1.Resource("pods"), pod.Name)
	case live.UID != pod.UID || live.ResourceVersion != pod.ResourceVersion || live.Spec.NodeName != "" || live.DeletionTimestamp != nil:
		return apierrors.NewConflict(v1.Resource("pods"), pod.Name, errors.New("precondition failed"))
	}
	for name, other := range a.pods {
		if other.Spec.NodeName != node || sighted(other, other.UID).gone {
			continue
		}
		for gpu := range strings.SplitSeq(other.Annotations[workload.Allocated], ",") {
			if slices.Contains(gpus, gpu) {
				a.doubles = append(a.doubles, fmt.Sprintf("%s: %s and %s", gpu, name, pod.Name))
			}
		}
	}
	live.Spec.NodeName, live.Annotations = node, map[string]string{workload.Allocated: strings.Join(gpus, ",")}
	live.Status.Phase, live.ResourceVersion = v1.PodRunning, a.next()
	return nil
}

// edit is somebody with kubectl.
func (a *api) edit(node string, change func(*coordinationv1.Lease)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	lease := a.leases[node].DeepCopy()
	change(lease)
	lease.ResourceVersion = a.next()
	a.store(watch.Modified, lease)
}

func (a *api) erase(node string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	gone := a.leases[node].DeepCopy()
	delete(a.leases, node)
	gone.ResourceVersion = a.next()
	a.tell(watch.Event{Type: watch.Deleted, Object: gone})
}

func (a *api) owners(node string) map[string]types.UID {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leases[node] == nil {
		return map[string]types.UID{}
	}
	return parse(a.leases[node]).owners
}

func (a *api) count(call string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[call]
}

func (a *api) set(fault func(verb, resource, name string) fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault = fault
}

// holdings are the bound pods, as a cache that is up to date knows them.
func (a *api) holdings() []Holding {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []Holding
	for _, pod := range a.pods {
		if pod.Spec.NodeName == "" || sighted(pod, pod.UID).gone {
			continue
		}
		all = append(all, Holding{Node: pod.Spec.NodeName, Claimant: claim(pod, strings.Split(pod.Annotations[workload.Allocated], ",")...)})
	}
	return all
}

func claim(pod *v1.Pod, gpus ...string) Claimant {
	return Claimant{Pod: pod.UID, Namespace: pod.Namespace, Name: pod.Name, GPUs: gpus}
}

// locks of one more scheduler. Its informer runs only when the test runs it.
func (a *api) locks(name string, change ...func(*Options)) *Locks {
	opts := Options{Holder: name, Bound: a.holdings, Patience: time.Hour}
	for _, c := range change {
		c(&opts)
	}
	l, err := New(a.client(), opts)
	if err != nil {
		a.t.Fatal(err)
	}
	return l
}

// answer is a reactor that always fails.
func answer(err error) clienttesting.ReactionFunc {
	return func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
}
