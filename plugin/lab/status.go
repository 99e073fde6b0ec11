// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrNotUp is the answer of Status when there is no lab that works: exit 3.
var ErrNotUp = errors.New("not up")

// Status prints what runs, and returns ErrNotUp unless all of it does.
func (l Lab) Status(ctx context.Context, out io.Writer) error {
	running, err := l.running()
	if err != nil {
		return err
	}
	if !running {
		fmt.Fprintf(out, "lab: not up in %s\n", Show(l.Dir))
		return ErrNotUp
	}
	state, err := l.readState()
	if err != nil {
		fmt.Fprintf(out, "lab: being started in %s\n", Show(l.Dir))
		return ErrNotUp
	}
	word := "up"
	if !state.Ready {
		word = "starting or stopping"
	}
	fmt.Fprintf(out, "lab: %s in %s since %s: %s\n\n", word, Show(l.Dir), state.StartedAt.Format(time.DateTime), state.Cluster)
	printPrograms(out, state.Programs, time.Now())
	if !state.Ready {
		return ErrNotUp
	}
	return l.printCluster(ctx, out, state)
}

func printPrograms(out io.Writer, programs []ProgramState, now time.Time) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROGRAM\tPID\tPORT\tRUNNING\tRESTARTS\tLAST EXIT")
	for _, p := range programs {
		pid, port, age, last := "-", "-", "-", "-"
		if p.PID != 0 {
			pid, age = strconv.Itoa(p.PID), now.Sub(p.Since).Round(time.Second).String()
		}
		if p.Port != 0 {
			port = strconv.Itoa(p.Port)
		}
		if p.LastExit != "" {
			last = p.LastExit
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\n", p.Name, pid, port, age, p.Restarts, last)
	}
	table.Flush()
}

// printCluster asks the API server itself; the state file only knows processes.
func (l Lab) printCluster(ctx context.Context, out io.Writer, state State) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := l.adminClient()
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		fmt.Fprintf(out, "\nthe API server does not answer: %v\n", err)
		return ErrNotUp
	}
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		fmt.Fprintf(out, "\nthe API server does not answer: %v\n", err)
		return ErrNotUp
	}
	phases := map[v1.PodPhase]int{}
	for i := range pods.Items {
		phases[pods.Items[i].Status.Phase]++
	}
	fmt.Fprintf(out, "\nnodes  %d of %d Ready\n", readyNodes(nodes.Items), len(nodes.Items))
	fmt.Fprintf(out, "pods   %d running, %d pending, %d succeeded, %d failed\n",
		phases[v1.PodRunning], phases[v1.PodPending], phases[v1.PodSucceeded], phases[v1.PodFailed])
	fmt.Fprintf(out, "server %s   kubeconfig %s\n", state.Server, Show(l.Kubeconfig()))
	for _, p := range state.Programs {
		if p.PID == 0 {
			fmt.Fprintf(out, "%s is not running; see %s\n", p.Name, Show(l.LogFile(p.Name)))
			return ErrNotUp
		}
	}
	return nil
}
