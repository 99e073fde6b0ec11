// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/liveconfig"
	"github.com/frond-scheduler/frond/plugin/status"
)

// Status and live configuration have a client of their own, slower than the scheduler's: what users read may be a moment
// late, a Binding may not.
const (
	statusQPS     = 100
	statusBurst   = 200
	statusWriters = 4
)

// prepareReports makes the reporter and the watcher of live configuration; run starts both.
func (c *cluster) prepareReports(logger klog.Logger, handle fwk.Handle) (writer *status.Writer, settled func() bool, run func(context.Context), err error) {
	config := rest.CopyConfig(handle.KubeConfig())
	config.QPS, config.Burst = statusQPS, statusBurst
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("making a client for status and live configuration: %w", err)
	}
	writer = status.New(client, c.now)
	if c.ended, err = newEndedPods(c, handle.ClientSet()); err != nil {
		return nil, nil, nil, err
	}
	c.report = newReporter(c, writer, func() bool { return c.synced() && c.ended.synced() })
	watcher, err := liveconfig.New(client, func(spec []byte) error { return c.configure(logger, spec) }, c.report.config)
	if err != nil {
		return nil, nil, nil, err
	}
	// Nothing is decided before live configuration counts, but for long nobody waits for a kind that cannot be listed.
	patient := c.now().Add(syncPatience)
	settled = func() bool { return watcher.Settled() || c.now().After(patient) }
	return writer, settled, func(ctx context.Context) {
		go writer.Run(ctx, statusWriters)
		go c.report.run(ctx)
		go c.ended.run(ctx)
		go watcher.Run(ctx)
	}, nil
}

// configure tunes the engine, and wakes whoever waits: other weights and caps may let them in. Every process does, because a
// standby may lead next.
func (c *cluster) configure(logger klog.Logger, spec []byte) error {
	if err := c.engine.ConfigPut(spec); err != nil {
		return err
	}
	if !c.synced() {
		return nil // nothing has been decided yet
	}
	c.capacityChanged.Store(true)
	c.roomAppeared(true)
	c.wakeSingle(logger)
	return nil
}

// wakeSingle wakes pods in no gang that wait. For gangs the table does it, for events that it knows the scheduler's queue.
func (c *cluster) wakeSingle(logger klog.Logger) {
	pods, err := c.first.SharedInformerFactory().Core().V1().Pods().Lister().List(labels.Everything())
	if err != nil {
		logger.Error(err, "Pods that wait are not woken")
		return
	}
	var waiting []*v1.Pod
	for _, pod := range pods {
		_, ours := c.profiles.Load(pod.Spec.SchedulerName)
		if ours && pod.Spec.NodeName == "" && c.reader.GPUs(pod) > 0 && !c.table.Member(pod.UID) {
			waiting = append(waiting, pod)
		}
	}
	if len(waiting) > 0 {
		c.activate(logger, waiting...)
	}
}
