// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	kwokAnnotation      = "kwok.x-k8s.io/node"
	kwokAnnotationValue = "fake"
	labNamespace        = "frond-lab" // placeholder pods of GPUs that the fabric says are in use
	leafLabel           = "fabric.topograph.run/tier-0"
	spineLabel          = "fabric.topograph.run/tier-1"
	cliqueLabel         = "nvidia.com/gpu.clique"
	nvidiaResource      = "nvidia.com/gpu"
	amdResource         = "amd.com/gpu"
	nodeWriters         = 16
)

// FabricNode is a node as the engine's fabric_expand writes it (frond.h).
type FabricNode struct {
	Name          string            `json:"name"`
	Spine         string            `json:"spine"`
	Leaf          string            `json:"leaf"`
	GPUs          int               `json:"gpus"`
	Model         string            `json:"model"`
	UplinkGbps    int               `json:"uplinkGbps"`
	UsedGPUs      []int             `json:"usedGpus"`
	UnhealthyGPUs []int             `json:"unhealthyGpus"`
	Cordoned      bool              `json:"cordoned"`
	Labels        map[string]string `json:"labels"`
	Machine       string            `json:"machine,omitempty"` // the kind that it stands for (machines.go)
	Agent         bool              `json:"agent,omitempty"`   // a frond-agent runs for it
}

// parseFabric reads the engine's answer.
func parseFabric(data []byte) ([]FabricNode, error) {
	var fabric struct {
		Nodes []FabricNode `json:"nodes"`
	}
	if err := json.Unmarshal(data, &fabric); err != nil {
		return nil, fmt.Errorf("read the expanded fabric: %w", err)
	}
	if len(fabric.Nodes) == 0 {
		return nil, fmt.Errorf("the fabric has no nodes")
	}
	return fabric.Nodes, nil
}

// products are the names that GPU feature discovery would report for the engine's models.
var products = map[string]string{
	"DGX-1V":   "Tesla-V100-SXM2-16GB",
	"DGX-2":    "Tesla-V100-SXM3-32GB",
	"A100-SXM": "NVIDIA-A100-SXM4-80GB",
	"H100-SXM": "NVIDIA-H100-80GB-HBM3",
	"B200-SXM": "NVIDIA-B200",
	"GB200":    "NVIDIA-GB200",
	"MI300X":   "AMD-Instinct-MI300X-OAM",
}

func (n FabricNode) resource() v1.ResourceName {
	if n.Model == "MI300X" {
		return amdResource
	}
	return nvidiaResource
}

// object is the Node that stands for n, the index-th of its fabric. As with a real device plugin, sick GPUs count as
// capacity but cannot be allocated.
func (n FabricNode) object(index int) *v1.Node {
	labels := map[string]string{
		"kubernetes.io/hostname":      n.Name,
		"kubernetes.io/arch":          "amd64",
		"kubernetes.io/os":            "linux",
		"node-role.kubernetes.io/gpu": "",
		"type":                        "kwok",
	}
	set := func(key, value string) {
		if value != "" {
			labels[key] = value
		}
	}
	set(leafLabel, n.Leaf)
	set(spineLabel, n.Spine)
	if n.GPUs > 0 && n.Model != "" {
		product, known := products[n.Model]
		if !known {
			product = n.Model
		}
		prefix := "nvidia.com"
		if n.resource() == amdResource {
			prefix = "amd.com"
		}
		labels[prefix+"/gpu.product"] = product
		labels[prefix+"/gpu.count"] = strconv.Itoa(n.GPUs)
	}
	for key, value := range n.Labels {
		labels[key] = value
	}
	capacity := v1.ResourceList{
		v1.ResourceCPU:    resource.MustParse("128"),
		v1.ResourceMemory: resource.MustParse("2Ti"),
		v1.ResourcePods:   resource.MustParse("110"),
	}
	allocatable := capacity.DeepCopy()
	if n.GPUs > 0 {
		capacity[n.resource()] = *resource.NewQuantity(int64(n.GPUs), resource.DecimalSI)
		allocatable[n.resource()] = *resource.NewQuantity(int64(n.GPUs-len(n.UnhealthyGPUs)), resource.DecimalSI)
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        n.Name,
			Labels:      labels,
			Annotations: map[string]string{kwokAnnotation: kwokAnnotationValue},
		},
		Spec: v1.NodeSpec{Unschedulable: n.Cordoned},
		Status: v1.NodeStatus{
			Capacity:    capacity,
			Allocatable: allocatable,
			Addresses: []v1.NodeAddress{
				{Type: v1.NodeInternalIP, Address: nodeIP(index)},
				{Type: v1.NodeHostName, Address: n.Name},
			},
		},
	}
}

// nodeIP gives every node an address of its own out of 10.128.0.0/9; nobody ever connects to it.
func nodeIP(index int) string {
	host := index + 1
	return net.IPv4(10, byte(128+host>>16), byte(host>>8), byte(host)).String()
}

// placeholder holds the GPUs that the fabric says are in use, by count; nil when there are none. It is bound by its
// maker, so no scheduler is asked.
func (n FabricNode) placeholder() *v1.Pod {
	if len(n.UsedGPUs) == 0 {
		return nil
	}
	no := false
	gpus := *resource.NewQuantity(int64(len(n.UsedGPUs)), resource.DecimalSI)
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "used-" + n.Name, Namespace: labNamespace},
		Spec: v1.PodSpec{
			NodeName:                     n.Name,
			AutomountServiceAccountToken: &no,
			Containers: []v1.Container{{
				Name:  "holder",
				Image: "registry.k8s.io/pause:3.10",
				Resources: v1.ResourceRequirements{
					Limits: v1.ResourceList{n.resource(): gpus},
				},
			}},
		},
	}
}

// createNodes writes all nodes, a few at a time, and then what occupies them.
func createNodes(ctx context.Context, client kubernetes.Interface, nodes []FabricNode) error {
	return inParallel(ctx, len(nodes), nodeWriters, func(ctx context.Context, i int) error {
		if _, err := client.CoreV1().Nodes().Create(ctx, nodes[i].object(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", nodes[i].Name, err)
		}
		return nil
	})
}

func createPlaceholders(ctx context.Context, client kubernetes.Interface, nodes []FabricNode) error {
	var pods []*v1.Pod
	for _, node := range nodes {
		if pod := node.placeholder(); pod != nil {
			pods = append(pods, pod)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	if err := createNamespace(ctx, client, labNamespace); err != nil {
		return err
	}
	return inParallel(ctx, len(pods), nodeWriters, func(ctx context.Context, i int) error {
		if _, err := client.CoreV1().Pods(labNamespace).Create(ctx, pods[i], metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create pod %s: %w", pods[i].Name, err)
		}
		return nil
	})
}

// createNamespace also waits for the account that every pod in it needs.
func createNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	for {
		_, err := client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("wait for the service account of namespace %s: %w", name, err)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("wait for the service account of namespace %s: %w", name, err)
		}
	}
}

// readyNodes counts the nodes on which a pod could start: Ready, and rid of the taint that every new node gets until
// the controller-manager has seen it Ready.
func readyNodes(nodes []v1.Node) int {
	ready := 0
	for i := range nodes {
		if nodeReady(&nodes[i]) {
			ready++
		}
	}
	return ready
}

func nodeReady(node *v1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == v1.TaintNodeNotReady || taint.Key == v1.TaintNodeUnreachable {
			return false
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == v1.NodeReady {
			return condition.Status == v1.ConditionTrue
		}
	}
	return false
}

// inParallel calls work for 0 … n-1 from a few goroutines and returns the first error, after all have ended.
func inParallel(ctx context.Context, n, workers int, work func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var group sync.WaitGroup
	for range min(workers, n) {
		group.Go(func() {
			for i := range next {
				if err := work(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	group.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
