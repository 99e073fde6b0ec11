// SPDX-License-Identifier: Apache-2.0

// Package locks keeps one Lease per node that says which pod owns which GPU. It is changed only by compare-and-swap, so
// of two schedulers that both think they lead, at most one gets a GPU (docs/locks.md). It decides no placement, and it
// takes nobody's word but the API server's for a pod being gone.
package locks

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// Names in the Leases.
const (
	OwnersAnnotation = "gpu.scheduling/owners" // JSON object, GPU id → pod UID
	PodsAnnotation   = "gpu.scheduling/pods"   // JSON object, pod UID → who that is and who took its GPUs
	Label            = "gpu.scheduling/locks"  // tells our Leases from others of the namespace
	labelValue       = "node"

	DefaultNamespace = "frond-system"
)

const (
	// every is the time between two comparisons of Leases and bound pods.
	every = time.Minute
	// patience is how long a reservation that another scheduler made may wait for its Binding before it is revoked.
	patience = 15 * time.Second
	// width is how many nodes are worked on at once.
	width = 32
)

// Claimant is a pod and GPUs of one node.
type Claimant struct {
	Pod       types.UID
	Namespace string
	Name      string
	GPUs      []string // ids: UUIDs or NODE-gpu-INDEX
}

// Holding is a bound pod and its GPUs, as a cache knows it.
type Holding struct {
	Node string
	Claimant
}

// Options of New.
type Options struct {
	Namespace string // of the Leases; "": DefaultNamespace
	Holder    string // names this process to people; a random part is added, so a restarted process is another holder
	Logger    klog.Logger

	// Bound lists bound pods with their GPUs, as far as they are Credible; Compare checks the Leases against it. It may be behind
	// the API server.
	Bound func() []Holding
	// GPUs is how many a pod's limits give it: what is written on it counts only if it is as many. nil: it always counts.
	GPUs func(pod *v1.Pod) int
	// HasNode says whether a node exists; nil: Leases of nodes that are gone are kept.
	HasNode func(name string) bool
	// Find is the namespace and name of a pod in a cache, by UID; nil: only the Leases' own notes are used.
	Find func(uid types.UID) (types.NamespacedName, bool)
	// Leading says whether this process may tidy up; nil: always. Locks are taken regardless: the Leases decide.
	Leading func() bool
	// GangOf is the name of the Lease of a pod's gang, "" when it is in none; certain is false while that is not known. nil:
	// no gang is ever taken.
	GangOf func(pod *v1.Pod) (lease string, certain bool)
	// OnConflict hears of every refusal, from many goroutines.
	OnConflict func(*HeldError)
	// Changed hears of every Lease that the watch shows, one after the other; nil: nobody.
	Changed func(node string)

	Every        time.Duration    // between comparisons; 0: a minute
	Patience     time.Duration    // with other schedulers' reservations; 0: 15 s
	GangPatience time.Duration    // with other schedulers' gangs; 0: 3 s
	Now          func() time.Time // nil: time.Now
}

// Locks of all nodes.
type Locks struct {
	client kubernetes.Interface
	opts   Options
	me     string
	log    klog.Logger
	wait   waiter
	stats  counters
	synced atomic.Bool
	queue  workqueue.TypedRateLimitingInterface[string] // nodes with something to free
	alarm  chan time.Duration                           // a comparison is due in so long

	mu    sync.Mutex
	nodes map[string]*node
	gangs map[string]*gang // by name of their Lease
}

// node is what is known of one Lease. The gate is held through every change of it; the rest is guarded by Locks.mu.
type node struct {
	name string
	gate chan struct{} // one place
	uses int           // goroutines that have, or wait for, the gate

	lease *coordinationv1.Lease // newest seen; nil: none known
	table table                 // its content
	last  table                 // the last content that could be read: outlives a Lease that is damaged or deleted by hand
	// doubt is the resource version on which a write was based whose answer was lost. As long as the Lease has it, that
	// write may still arrive.
	doubt string

	taken    map[types.UID]bool      // what this process took and has not given back
	unwanted map[types.UID]bool      // Free was called
	seen     map[types.UID]time.Time // others' reservations: since when
}

// New checks the options. Nothing is read or written before Run or Take.
func New(client kubernetes.Interface, opts Options) (*Locks, error) {
	if client == nil {
		return nil, errors.New("locks: no client")
	}
	if opts.Holder == "" {
		return nil, errors.New("locks: Holder: must name this process, is empty")
	}
	for name, length := range map[string]time.Duration{"Every": opts.Every, "Patience": opts.Patience, "GangPatience": opts.GangPatience} {
		if length < 0 {
			return nil, fmt.Errorf("locks: %s: must not be negative, is %s", name, length)
		}
	}
	if opts.Namespace == "" {
		opts.Namespace = DefaultNamespace
	}
	if opts.Every == 0 {
		opts.Every = every
	}
	if opts.Patience == 0 {
		opts.Patience = patience
	}
	if opts.GangPatience == 0 {
		opts.GangPatience = gangPatience
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Locks{
		client: client, opts: opts, me: opts.Holder + "_" + string(uuid.NewUUID()), log: opts.Logger,
		wait:  pause,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](backoffLeast, backoffMost)),
		alarm: make(chan time.Duration, 1),
		nodes: map[string]*node{},
		gangs: map[string]*gang{},
	}, nil
}

// Synced says that all Leases that were there at the start are known.
func (l *Locks) Synced() bool { return l.synced.Load() }

// Identity is what this process writes as holder.
func (l *Locks) Identity() string { return l.me }

// Owners of a node's GPUs as last seen, reservations included.
func (l *Locks) Owners(name string) map[string]types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	owners := map[string]types.UID{}
	if n := l.nodes[name]; n != nil {
		for gpu, uid := range n.readable().owners {
			owners[gpu] = uid
		}
	}
	return owners
}

func (l *Locks) leading() bool { return l.opts.Leading == nil || l.opts.Leading() }
