// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/frond-scheduler/frond/plugin/apis"
)

// beatEvery is how often the lab says that a machine is still there: an agent's heartbeat.
const beatEvery = 25 * time.Second

// reports speaks for machines that have no agent of their own: a hundred agents would be a gigabyte of memory. What it
// says is what the probe found when the lab began.
type reports struct {
	nodes    kubernetes.Interface
	objects  dynamic.NamespaceableResourceInterface
	machines []machine
}

type machine struct {
	node   string
	status map[string]any
}

func newReports(l Lab, client kubernetes.Interface, nodes []FabricNode, statuses []map[string]any) (*reports, error) {
	config, err := l.adminConfig()
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for reports: %w", err)
	}
	r := &reports{nodes: client, objects: objects.Resource(apis.GpuNodeStatuses)}
	for i, status := range statuses {
		if status != nil && !nodes[i].Agent {
			r.machines = append(r.machines, machine{node: nodes[i].Name, status: status})
		}
	}
	return r, nil
}

func (r *reports) writeAll(ctx context.Context) error {
	return inParallel(ctx, len(r.machines), nodeWriters, func(ctx context.Context, i int) error {
		return r.write(ctx, r.machines[i])
	})
}

// write makes the object as an agent would: it goes when its node does. A node that is gone has no report.
func (r *reports) write(ctx context.Context, m machine) error {
	node, err := r.nodes.CoreV1().Nodes().Get(ctx, m.node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at node %s: %w", m.node, err)
	}
	options := metav1.ApplyOptions{FieldManager: "frond-lab", Force: true}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apis.GPU.WithKind(apis.KindGpuNodeStatus))
	object.SetName(m.node)
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: m.node, UID: node.UID}})
	if _, err := r.objects.Apply(ctx, m.node, object, options); err != nil {
		return fmt.Errorf("write the report of node %s: %w", m.node, err)
	}
	object.SetOwnerReferences(nil)
	object.Object["status"] = beating(m.status)
	if _, err := r.objects.ApplyStatus(ctx, m.node, object, options); err != nil {
		return fmt.Errorf("write the report of node %s: %w", m.node, err)
	}
	return nil
}

func beating(status map[string]any) map[string]any {
	status = maps.Clone(status)
	status["heartbeat"] = now()
	return status
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// keep sends heartbeats until the context ends, one node after the other: a thousand at once would be a storm.
func (r *reports) keep(ctx context.Context, log *slog.Logger) {
	if len(r.machines) == 0 {
		return
	}
	failing := false
	for i := 0; pause(ctx, beatEvery/time.Duration(len(r.machines))) == nil; i = (i + 1) % len(r.machines) {
		err := r.beat(ctx, r.machines[i])
		if err != nil && !failing && ctx.Err() == nil {
			log.Warn("heartbeat not written", "error", err)
		}
		failing = err != nil
	}
}

func (r *reports) beat(ctx context.Context, m machine) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"heartbeat": now()}})
	if err != nil {
		return fmt.Errorf("write a heartbeat: %w", err)
	}
	_, err = r.objects.Patch(ctx, m.node, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "frond-lab"}, "status")
	if apierrors.IsNotFound(err) {
		return r.write(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("write the heartbeat of node %s: %w", m.node, err)
	}
	return nil
}
