// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/nodereport"
)

// reading is what the informer keeps of a GpuNodeStatus: a hundredth of the object.
type reading struct {
	metav1.ObjectMeta
	report *nodereport.Report
	err    error
}

func read(object any) (any, error) {
	status, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil // read already, or a tombstone of one that is
	}
	report, err := nodereport.Read(status)
	return &reading{ObjectMeta: metav1.ObjectMeta{Name: status.GetName(), UID: status.GetUID(), ResourceVersion: status.GetResourceVersion()},
		report: report, err: err}, nil
}

// WatchReports makes an informer of GpuNodeStatus, which the caller runs. The CRD may not be installed, now or ever, or the
// account may not read it: that is said once and holds nothing up. synced: all that was there at the start has been
// entered, or nothing can be read. Decisions wait for it, because pods carry the ids that reports explain.
func (m *Mirror) WatchReports(logger klog.Logger, client dynamic.Interface, observer Observer) (informer cache.SharedIndexInformer, synced func() bool, err error) {
	informer = dynamicinformer.NewFilteredDynamicInformer(client, nodereport.Resource(), metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	var once sync.Once
	var unreadable atomic.Bool
	err = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			unreadable.Store(true)
		}
		once.Do(func() {
			logger.Info("GpuNodeStatus objects cannot be read; nodes go by allocatable and labels", "err", err)
		})
	})
	if err == nil {
		err = informer.SetTransform(read)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("preparing to watch GpuNodeStatus objects: %w", err)
	}
	w := &watcher{mirror: m, logger: logger, observer: observer}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    w.reportSet,
		UpdateFunc: func(_, object any) { w.reportSet(object) },
		DeleteFunc: w.reportDeleted,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("watching GpuNodeStatus objects: %w", err)
	}
	return informer, func() bool { return unreadable.Load() || registration.HasSynced() }, nil
}

func (w *watcher) reportSet(object any) {
	reading, ok := object.(*reading)
	if !ok {
		return
	}
	switch {
	case reading.err == nil:
		if w.mirror.SetReport(reading.report) {
			w.observer.ReportChanged(reading.Name)
		}
	case !errors.Is(reading.err, nodereport.ErrEmpty):
		w.logger.V(2).Info("Report refused", "node", reading.Name, "err", reading.err)
		w.mirror.RefuseReport(reading.Name, reading.UID, reading.err)
	}
	w.mirror.Tell(w.observer)
}

func (w *watcher) reportDeleted(object any) {
	if reading, ok := last[*reading](object); ok && w.mirror.DropReport(reading.Name) {
		w.observer.ReportChanged(reading.Name)
	}
}

// reportsPause is how often silent agents are looked for.
const reportsPause = 500 * time.Millisecond

// RunReports acts on agents that fall silent, until the context ends, as soon as all that was there at the start is known:
// a report alone may be older than its agent's last sign of life. checked is called after each look.
func (m *Mirror) RunReports(ctx context.Context, synced func() bool, now func() time.Time, observer Observer, checked func()) {
	ticker := time.NewTicker(reportsPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !synced() {
				continue
			}
			for _, name := range m.CheckReports(now()) {
				observer.ReportChanged(name)
			}
			m.Tell(observer)
			checked()
		}
	}
}
