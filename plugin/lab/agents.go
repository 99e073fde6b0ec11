// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/frond-scheduler/frond/manifests"
	"github.com/frond-scheduler/frond/plugin/apis"
)

// agentName is a program's name for status and logs.
func agentName(node string) string { return progAgent + "-" + node }

// agentToken is where an agent finds its token, as it would under /var/run/secrets.
func (l Lab) agentToken(node string) string { return l.path("config", agentName(node)+".token") }

// agent is the program of a node's agent: the account, the rights and the authority that its DaemonSet would give it, on
// the node's machine.
func (l Lab) agent(e endpoints, n FabricNode, port int) program {
	p := l.program(progAgent, port, append(l.looking(n),
		"--node", n.Name,
		"--api", local(e.apiServer),
		"--token-file", l.agentToken(n.Name),
		"--ca-file", l.path("pki", "ca.crt"),
		"--listen", fmt.Sprintf("127.0.0.1:%d", port))...)
	p.name, p.log = agentName(n.Name), l.LogFile(agentName(n.Name))
	p.env = append(p.env, machineEnv+"="+l.machineOf(n.Name))
	return p
}

// writeAgentToken asks for a token that is bound to the node, as those that kubelets mount are: it opens no other
// node's object.
func (b *bringUp) writeAgentToken(ctx context.Context, node string) error {
	object, err := b.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("look at node %s: %w", node, err)
	}
	seconds := int64(certLife.Seconds())
	token, err := b.client.CoreV1().ServiceAccounts(manifests.Namespace).CreateToken(ctx, manifests.AgentAccount,
		&authv1.TokenRequest{Spec: authv1.TokenRequestSpec{
			ExpirationSeconds: &seconds,
			BoundObjectRef:    &authv1.BoundObjectReference{Kind: "Node", APIVersion: "v1", Name: node, UID: object.UID},
		}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make the token of the agent of node %s: %w", node, err)
	}
	if err := writeFile(b.lab.agentToken(node), []byte(token.Status.Token)); err != nil {
		return fmt.Errorf("write the token of the agent of node %s: %w", node, err)
	}
	return nil
}

// startAgents starts the real ones and waits for their first reports.
func (b *bringUp) startAgents(ctx context.Context) error {
	started := 0
	for _, n := range b.nodes {
		if !n.Agent {
			continue
		}
		if err := b.writeAgentToken(ctx, n.Name); err != nil {
			return err
		}
		b.children.start(b.lab.agent(b.at, n, b.at.agents[started]))
		started++
	}
	for _, n := range b.nodes {
		if !n.Agent {
			continue
		}
		err := b.await(ctx, agentName(n.Name), pollEvery, func() error {
			object, err := b.reports.objects.Get(ctx, n.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if _, found, err := unstructured.NestedInt64(object.Object, "status", "total"); err != nil || !found {
				return fmt.Errorf("%s %s has no status yet", apis.KindGpuNodeStatus, n.Name)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
