// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/demand"
	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/locks"
	"github.com/frond-scheduler/frond/plugin/mirror"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// Host holds what all profiles of one process share: the library, one engine, the mirror and the gang table. main makes
// one and registers its Factory.
type Host struct {
	Record string // file for a recording of all calls to the engine (docs/recording.md); "": none
	// Leading says whether this process leads, and whether there is an election at all; nil: it is alone.
	Leading func() (leading, elected bool)

	mu     sync.Mutex
	shared *cluster
	args   []byte // canonical; profiles that use the plugin must agree
}

// cluster is the shared part, made when the first profile asks for it.
type cluster struct {
	args   shim.Args
	engine *shim.Engine
	reader *workload.Reader
	mirror *mirror.Mirror
	table  *gangs.Table
	demand *demand.Demand
	locks  *locks.Locks // nil: device locks are off
	now    func() time.Time

	lockNamespace string // of the Leases; "": device locks are off
	leading       func() bool
	sources       *sources // what pods refer to
	report        *reporter
	ended         *endedPods // nil in tests that tell of them themselves

	ctx             context.Context // of the scheduler: ends all that we have started
	first           fwk.Handle      // any profile's: queue, waiting pods and informers are the same for all
	recorder        record.EventRecorder
	told            toldReasons
	kept            *keptRooms
	capacityChanged atomic.Bool // since the last round of gangs that wait
	profiles        sync.Map    // scheduler names that use the plugin
	alarms          sync.Map    // single pods that are woken when their topology-wait ends
	synced          func() bool
	caughtUp        atomic.Bool
	reportsChanged  atomic.Bool               // since single pods were last woken
	seenAll         atomic.Pointer[time.Time] // since when everything that was there at the start is known
	freed           chan bool                 // room may have appeared; true: GPUs or a node
	binding         chan struct{}             // Bindings on their way
}

// Factory makes the plugin for a profile. An error stops the start of the scheduler; it is one sentence.
func (h *Host) Factory(ctx context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	whole, ok := handle.(framework.Framework)
	if !ok {
		return nil, fmt.Errorf("%s needs the scheduler's own framework, got %T", Name, handle)
	}
	raw, err := rawArgs(object)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shared == nil {
		shared, err := open(raw, shim.Record(h.Record, recordingLost(ctx)))
		if err != nil {
			return nil, err
		}
		if h.Leading != nil {
			shared.leading = func() bool {
				leading, elected := h.Leading()
				return leading || !elected && shared.leadsAlone()
			}
		}
		if err := shared.start(ctx, handle); err != nil {
			shared.engine.Close()
			return nil, err
		}
		h.shared, h.args = shared, canonical(raw)
	} else if !bytes.Equal(h.args, canonical(raw)) {
		return nil, fmt.Errorf("profile %q: the args of %s differ from those of another profile; one engine serves all, so they must be equal", handle.ProfileName(), Name)
	}
	h.shared.profiles.Store(handle.ProfileName(), true)
	return &Plugin{cluster: h.shared, handle: handle, framework: whole}, nil
}

// rawArgs are the JSON that the configuration holds for us: an unregistered kind stays undecoded.
func rawArgs(object runtime.Object) ([]byte, error) {
	switch args := object.(type) {
	case nil:
		return nil, nil
	case *runtime.Unknown:
		return args.Raw, nil
	default:
		return nil, fmt.Errorf("args: expected raw JSON, got %T", object)
	}
}

func canonical(raw []byte) []byte {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return raw
	}
	text, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return text
}

// open loads the library and makes the engine. What is read in Go is what the engine has no use for: which library, which
// Leases. The library decodes the whole and says what is wrong with it, better than we could.
func open(raw []byte, how ...shim.Option) (*cluster, error) {
	var peek struct {
		CorePath    string `json:"corePath"`
		DeviceLocks struct {
			Enabled   *bool  `json:"enabled"`
			Namespace string `json:"namespace"`
		} `json:"deviceLocks"`
	}
	_ = json.Unmarshal(raw, &peek)
	library, err := shim.Open(peek.CorePath)
	if err != nil {
		return nil, err
	}
	args, err := library.Args(raw)
	if err != nil {
		return nil, err
	}
	fabric, err := args.Fabric()
	if err != nil {
		return nil, err
	}
	engine, err := library.New(mirror.Limits(), raw, fabric, how...)
	if err != nil {
		if args.FabricFile != "" {
			return nil, fmt.Errorf("args.topology.fabricFile: %s: %w", args.FabricFile, err)
		}
		return nil, err
	}
	shared := &cluster{args: args, engine: engine, now: time.Now, freed: make(chan bool, 64), binding: make(chan struct{}, bindWidth), leading: func() bool { return true }}
	if peek.DeviceLocks.Enabled == nil || *peek.DeviceLocks.Enabled {
		shared.lockNamespace = cmp.Or(peek.DeviceLocks.Namespace, locks.DefaultNamespace)
	}
	return shared, nil
}

// recordingLost says that there is no recording, or no more of it; scheduling goes on.
func recordingLost(ctx context.Context) func(error) {
	return func(err error) { loggerFor(ctx).Error(err, "Calls to the engine are not recorded") }
}

// start registers handlers with the scheduler's informers and starts our own goroutines; the context ends them all.
func (c *cluster) start(ctx context.Context, handle fwk.Handle) error {
	logger := klog.LoggerWithName(klog.FromContext(ctx), Name)
	c.ctx, c.first, c.recorder = ctx, handle, newRecorder(ctx, handle)
	c.sources = newSources()
	c.reader = workload.NewReader(c.args.Resources, c.sources.owners, c.sources.claims)
	c.reader.Serve(func(schedulerName string) bool { _, ours := c.profiles.Load(schedulerName); return ours })
	if utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload) {
		c.reader.LeaveNativeGroups()
	}
	c.mirror = mirror.New(c.engine, c.reader)
	c.mirror.SetUnavailableAfter(c.args.UnavailableAfter, c.now)
	c.reader.FindGPUs(c.mirror.GPU)
	c.table = gangs.New(c.args.PermitWait, c.now)
	c.kept = newKeptRooms()
	c.demand = demand.New()

	core := handle.SharedInformerFactory().Core().V1()
	observer := &observer{cluster: c, logger: logger}
	writer, settled, runReports, err := c.prepareReports(logger, handle)
	if err != nil {
		return err
	}
	watches, err := newWatches(observer, handle)
	if err != nil {
		return err
	}
	c.sources.watches = watches
	synced, err := c.mirror.Watch(logger, core.Nodes().Informer(), core.Pods().Informer(), observer)
	if err != nil {
		return err
	}
	reported, err := observer.watchReports(ctx, handle.KubeConfig(), writer)
	if err != nil {
		return err
	}
	locked := func() bool { return true }
	if c.lockNamespace != "" {
		if err := c.startLocks(ctx, logger, handle.KubeConfig()); err != nil {
			return err
		}
		locked = c.locks.Synced
	}
	c.synced = func() bool { return synced() && reported() && locked() && settled() }
	runReports(ctx)
	go watches.run(ctx)
	go c.table.Run(ctx, &performer{cluster: c, logger: logger})
	go c.mirror.Run(ctx, logger, synced, core.Nodes().Informer().GetStore(), observer)
	go c.mirror.RunAge(ctx, observer)
	go c.watchRoom(ctx)
	keeps := &keeper{cluster: c, logger: logger}
	go keeps.run(ctx)
	if c.locks != nil {
		go keeps.runSweep(ctx)
	}
	go c.runRecall(ctx, logger)
	logger.Info("Engine ready", "megabytes", c.engine.Bytes()>>20, "gpuResources", c.args.Resources,
		"fabricFile", c.args.FabricFile, "permitWait", c.args.PermitWait, "deviceLocks", c.lockNamespace)
	return nil
}

// Nothing is decided before the mirror has seen what was there at the start. Upstream waits for its own handlers only,
// and ours may be a few milliseconds behind them.
const (
	syncPatience = 10 * time.Second
	syncPoll     = 5 * time.Millisecond
)

const reasonNotSynced = "the scheduler has not seen all nodes and pods yet"

// await returns once the mirror has caught up.
func (c *cluster) await(ctx context.Context) error {
	if c.caughtUp.Load() {
		return nil
	}
	for deadline := c.now().Add(syncPatience); !c.synced(); {
		if c.now().After(deadline) {
			return errors.New(reasonNotSynced)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(syncPoll):
		}
	}
	c.caughtUp.Store(true)
	return nil
}

// Room that appears wakes gangs that wait for it. Many pods end at once, so a moment is waited for all of them; CPU and
// memory alone are rarely what a gang of GPUs waits for, so they wait longer.
const (
	gpuPause   = 20 * time.Millisecond
	otherPause = time.Second
)

func (c *cluster) roomAppeared(gpus bool) {
	select {
	case c.freed <- gpus:
	default: // as many are waiting to be heard already
	}
}

func (c *cluster) watchRoom(ctx context.Context) {
	timer := time.NewTimer(0)
	<-timer.C
	var at time.Time // zero: nothing has been freed
	for {
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case gpus := <-c.freed:
			pause := otherPause
			if gpus {
				pause = gpuPause
			}
			if due := time.Now().Add(pause); at.IsZero() || due.Before(at) {
				at = due
				timer.Reset(pause)
			}
		case <-timer.C:
			at = time.Time{}
			c.table.Step(gangs.RoomAppeared{Nodes: c.capacityChanged.Swap(false)})
		}
	}
}
