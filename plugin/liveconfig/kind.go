// SPDX-License-Identifier: Apache-2.0

package liveconfig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// kind watches one kind of object. Its definition may not be installed, now or ever; the informer goes on asking, at
// last twice a minute.
type kind struct {
	resource schema.GroupVersionResource
	informer cache.SharedIndexInformer
	absent   atomic.Bool // the API server serves no such kind, or not to us
	signal   func()
}

func newKind(client dynamic.Interface, resource schema.GroupVersionResource, signal func()) (*kind, error) {
	informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	k := &kind{resource: resource, informer: informer, signal: signal}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { signal() },
		UpdateFunc: func(before, after any) {
			if !sameSpec(before, after) { // our own conditions are no news
				signal()
			}
		},
		DeleteFunc: func(any) { signal() },
	})
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", resource.Resource, err)
	}
	if err := informer.SetWatchErrorHandlerWithContext(k.failed); err != nil {
		return nil, fmt.Errorf("watching %s: %w", resource.Resource, err)
	}
	return k, nil
}

func sameSpec(before, after any) bool {
	a, ok := before.(*unstructured.Unstructured)
	b, also := after.(*unstructured.Unstructured)
	return ok && also && a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration()
}

func (k *kind) run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.informer.RunWithContext(ctx)
	}()
	select {
	case <-k.informer.HasSyncedChecker().Done():
		k.signal() // there may have been no object to hear of
	case <-ctx.Done():
	}
	<-done
}

// failed hears of every list or watch that failed.
func (k *kind) failed(ctx context.Context, reflector *cache.Reflector, err error) {
	if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	if !k.absent.Swap(true) {
		klog.FromContext(ctx).Info("Live configuration of this kind cannot be read; its definition may not be installed", "resource", k.resource.Resource, "err", err)
		k.signal()
	}
}

// known says whether objects tells all that there is.
func (k *kind) known() bool { return k.informer.HasSynced() || k.absent.Load() }

// objects by name.
func (k *kind) objects() []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	for _, entry := range k.informer.GetStore().List() {
		if object, ok := entry.(*unstructured.Unstructured); ok {
			list = append(list, object)
		}
	}
	slices.SortFunc(list, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list
}
