// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/frond-scheduler/frond/manifests"
	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/plugin/workload"
)

const demoNamespace = "demo"

// DemoMachines are what the nodes of the default cluster stand for in a demo: whole leaves of one kind, most of them of
// the kind that the examples ask for.
const DemoMachines = "dgx-h100=96,dgx-a100=16,gb200=8,dgx-1v=4,pcie-4=4"

// demoFiles are what the demo submits, one after the other: examples that users can apply themselves.
var demoFiles = []string{
	"examples/train-2.yaml", "examples/train-4.yaml", "examples/train-8.yaml", "examples/train-16.yaml",
	"examples/small-pods.yaml",
}

// Draw draws the fabric with what is bound in it, through the engine.
type Draw func(args []byte, nodes []*v1.Node, pods []*v1.Pod, reports []*unstructured.Unstructured, color bool) (string, error)

// DemoOptions is what `lab demo` was asked for.
type DemoOptions struct {
	Up       UpOptions
	Draw     Draw
	Patience time.Duration // for each workload
}

// ErrNotPlaced is a demo in which something stayed pending.
var ErrNotPlaced = errors.New("not everything was placed")

// Demo starts what is not running, submits the examples and shows where each went and why. The cluster stays up.
func (l Lab) Demo(ctx context.Context, opts DemoOptions) error {
	if err := l.Up(opts.Up); err != nil {
		return err
	}
	client, err := l.adminClient()
	if err != nil {
		return err
	}
	config, err := l.adminConfig()
	if err != nil {
		return err
	}
	to, err := newApplier(config)
	if err != nil {
		return err
	}
	show := &demo{lab: l, client: client, to: to, out: opts.Up.Out, color: opts.Up.Terminal, draw: opts.Draw, patience: opts.Patience}
	if err := show.clear(ctx); err != nil {
		return err
	}
	if err := show.readReports(ctx); err != nil {
		return err
	}
	for _, path := range demoFiles {
		if err := show.submit(ctx, path); err != nil {
			return err
		}
	}
	fmt.Fprintf(show.out, "\n%s\n", show.drawn)
	if err := show.showReports(ctx); err != nil {
		return err
	}
	return show.finish()
}

type demo struct {
	lab      Lab
	client   *kubernetes.Clientset
	to       *applier
	out      io.Writer
	color    bool
	draw     Draw
	patience time.Duration

	drawn      string         // the last map
	indices    map[string]int // of GPUs, by the ids that reports give them
	examples   []string       // a node of every kind that is reported
	pods, gpus int            // placed
	pending    []string
}

// clear removes what an earlier demo left and waits until its pods are gone.
func (d *demo) clear(ctx context.Context) error {
	if err := createNamespace(ctx, d.client, demoNamespace); err != nil {
		return err
	}
	for _, path := range demoFiles {
		objects, err := readObjects(manifests.Files, path)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := d.remove(ctx, object); err != nil {
				return err
			}
		}
	}
	told := false
	for {
		left := 0
		for _, path := range demoFiles {
			objects, err := readObjects(manifests.Files, path)
			if err != nil {
				return err
			}
			for _, object := range objects {
				pods, _, err := d.members(ctx, object)
				if err != nil {
					return err
				}
				left += len(pods)
			}
		}
		if left == 0 {
			return nil
		}
		if !told {
			fmt.Fprintf(d.out, "demo: removing %d pods of an earlier demo\n", left)
			told = true
		}
		if err := pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

func (d *demo) remove(ctx context.Context, object *unstructured.Unstructured) error {
	behind := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &behind}
	var err error
	switch object.GetKind() {
	case "Job":
		err = d.client.BatchV1().Jobs(demoNamespace).Delete(ctx, object.GetName(), options)
	case "Pod":
		err = d.client.CoreV1().Pods(demoNamespace).Delete(ctx, object.GetName(), options)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// submit applies one example file and follows each workload in it until it is bound.
func (d *demo) submit(ctx context.Context, path string) error {
	objects, err := readObjects(manifests.Files, path)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nkubectl apply -n %s -f manifests/%s\n", demoNamespace, path)
	words := map[string]bool{} // that name this file's part of the map
	for _, object := range objects {
		begin := time.Now()
		if err := d.to.apply(ctx, object, demoNamespace); err != nil {
			return err
		}
		pods, bound, err := d.await(ctx, object)
		if err != nil {
			return err
		}
		why, err := d.why(ctx, object.GetName(), pods, bound)
		if err != nil {
			return err
		}
		if !bound {
			d.pending = append(d.pending, object.GetName())
			fmt.Fprintf(d.out, "  %s is still pending after %s\n", object.GetName(), d.patience)
		} else {
			placed := placementOf(pods, d.indices)
			d.pods, d.gpus = d.pods+len(pods), d.gpus+placed.gpus
			fmt.Fprintf(d.out, "  %s: %s, bound after %.1f s\n", object.GetName(), placed.title, time.Since(begin).Seconds())
			for _, line := range placed.lines {
				fmt.Fprintf(d.out, "    %s\n", line)
			}
			words[demoNamespace+"/"+object.GetName()+":"] = true
			for i := range pods {
				words[pods[i].Spec.NodeName] = true
				if pods[i].Annotations[allocatedAnnotation] == "" {
					return fmt.Errorf("pod %s was bound without a record of its GPUs: does %s run with TopologyGPU?",
						pods[i].Name, Show(filepath.Join(d.lab.Bin, progScheduler)))
				}
			}
		}
		for _, line := range why {
			fmt.Fprintf(d.out, "    why: %s\n", line)
		}
	}
	if err := d.drawMap(ctx); err != nil {
		return err
	}
	if part := partOfMap(d.drawn, words); part != "" {
		fmt.Fprintf(d.out, "\n%s\n", part)
	}
	return nil
}

// await waits until all pods of a workload have a node.
func (d *demo) await(ctx context.Context, object *unstructured.Unstructured) (pods []v1.Pod, bound bool, err error) {
	for deadline := time.Now().Add(d.patience); ; {
		pods, want, err := d.members(ctx, object)
		if err != nil {
			return nil, false, err
		}
		got := 0
		for i := range pods {
			if pods[i].Spec.NodeName != "" {
				got++
			}
		}
		if want > 0 && got == want {
			return pods, true, nil
		}
		if time.Now().After(deadline) {
			return pods, false, nil
		}
		if err := pause(ctx, pollEvery); err != nil {
			return nil, false, err
		}
	}
}

// members are the pods of a workload, and how many it should have.
func (d *demo) members(ctx context.Context, object *unstructured.Unstructured) ([]v1.Pod, int, error) {
	if object.GetKind() == "Pod" {
		pod, err := d.client.CoreV1().Pods(demoNamespace).Get(ctx, object.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, 1, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("look at pod %s: %w", object.GetName(), err)
		}
		return []v1.Pod{*pod}, 1, nil
	}
	want, _, err := unstructured.NestedInt64(object.Object, "spec", "parallelism")
	if err != nil {
		return nil, 0, fmt.Errorf("read the example %s: %w", object.GetName(), err)
	}
	options := metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + object.GetName()}
	list, err := d.client.CoreV1().Pods(demoNamespace).List(ctx, options)
	if err != nil {
		return nil, 0, fmt.Errorf("look at the pods of %s: %w", object.GetName(), err)
	}
	return list.Items, int(want), nil
}

// why gathers what the scheduler said about a workload: its events, each once, else the decision in its log.
func (d *demo) why(ctx context.Context, name string, pods []v1.Pod, bound bool) ([]string, error) {
	mine := map[string]bool{}
	for i := range pods {
		mine[string(pods[i].UID)] = true
	}
	list, err := d.client.CoreV1().Events(demoNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the events of namespace %s: %w", demoNamespace, err)
	}
	var lines []string
	seen := map[string]bool{}
	for i := range list.Items {
		event := &list.Items[i]
		if !mine[string(event.InvolvedObject.UID)] || seen[event.Message] || !telling(event, bound) {
			continue
		}
		seen[event.Message] = true
		lines = append(lines, strings.TrimSpace(event.Message))
	}
	if line := lastReason(d.lab.LogFile(progScheduler), demoNamespace+"/"+name); bound && len(lines) == 0 && line != "" {
		lines = append(lines, line)
	}
	return lines, nil
}

// telling picks the events that answer the question: why here, or why not.
func telling(event *v1.Event, bound bool) bool {
	if bound {
		return event.Type == v1.EventTypeNormal && event.Reason != "Scheduled"
	}
	return event.Type == v1.EventTypeWarning
}

// drawMap draws the whole fabric as the engine sees it.
func (d *demo) drawMap(ctx context.Context) error {
	nodes, err := d.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes for the map: %w", err)
	}
	pods, err := d.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list pods for the map: %w", err)
	}
	args, err := d.lab.SchedulerArgs()
	if err != nil {
		return err
	}
	reports, err := d.to.client.Resource(apis.GpuNodeStatuses).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list reports for the map: %w", err)
	}
	text, err := d.draw(args, pointers(nodes.Items), pointers(pods.Items), pointers(reports.Items), d.color)
	if err != nil {
		return fmt.Errorf("draw the map: %w", err)
	}
	d.drawn = strings.TrimRight(text, "\n")
	return nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// readReports learns what the ids of GPUs stand for, and which kinds of machines there are.
func (d *demo) readReports(ctx context.Context) error {
	list, err := d.to.client.Resource(apis.GpuNodeStatuses).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list reports: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int { return workload.NaturalCompare(a.GetName(), b.GetName()) })
	d.indices = map[string]int{}
	models := map[string]bool{}
	for i := range list.Items {
		report, err := apis.Status[apis.NodeReport](&list.Items[i])
		if err != nil {
			return fmt.Errorf("read the report of node %s: %w", list.Items[i].GetName(), err)
		}
		for _, device := range report.Devices {
			d.indices[device.ID] = int(device.Index)
			if !models[device.Model] {
				models[device.Model] = true
				d.examples = append(d.examples, list.Items[i].GetName())
			}
		}
	}
	return nil
}

// showReports shows what the nodes say of themselves, one of every kind.
func (d *demo) showReports(ctx context.Context) error {
	if len(d.examples) == 0 {
		return nil
	}
	kubectl := filepath.Join(d.lab.Bin, "kubectl")
	command := exec.CommandContext(ctx, kubectl, append([]string{"--kubeconfig", d.lab.Kubeconfig(), "get", "gns"}, d.examples...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl get gns: %w: %s", err, out)
	}
	fmt.Fprintf(d.out, "\nkubectl get gns %s\n%s", strings.Join(d.examples, " "), out)
	state, err := d.lab.readState()
	if err != nil {
		return err
	}
	for _, p := range state.Programs {
		if node, ok := strings.CutPrefix(p.Name, agentName("")); ok {
			fmt.Fprintf(d.out, "%s is a real frond-agent's (pid %d); to break its GPU 3: echo lost 3 >> %s\n", node, p.PID, Show(d.lab.machineOf(node)))
		}
	}
	return nil
}

// finish says how it went in one line, and how to go on.
func (d *demo) finish() error {
	l := d.lab
	stop := "make down"
	if Show(l.Dir) != DefaultDir {
		stop = fmt.Sprintf("%s down --dir %s", Show(filepath.Join(l.Bin, "lab")), Show(l.Dir))
	}
	fmt.Fprintf(d.out, "\nlook: %s --kubeconfig %s -n %s get pods -o wide\nstop: %s\n",
		Show(filepath.Join(l.Bin, "kubectl")), Show(l.Kubeconfig()), demoNamespace, stop)
	if len(d.pending) > 0 {
		fmt.Fprintf(d.out, "demo: %d pods with %d GPUs placed; pending: %s; the cluster stays up\n",
			d.pods, d.gpus, strings.Join(d.pending, ", "))
		return ErrNotPlaced
	}
	fmt.Fprintf(d.out, "demo: all %d pods with %d GPUs placed; the cluster stays up\n", d.pods, d.gpus)
	return nil
}
