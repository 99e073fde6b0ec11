// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// watchReports starts what brings the agents' reports into the mirror. synced: decisions need not wait for them any more.
func (o *observer) watchReports(ctx context.Context, config *rest.Config) (synced func() bool, err error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for GpuNodeStatus objects: %w", err)
	}
	informer, synced, err := o.mirror.WatchReports(o.logger, client, o)
	if err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	go o.mirror.RunReports(ctx, o.now, o)
	return synced, nil
}
