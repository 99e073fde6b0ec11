// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// Whoever books a gang tells the engine what it asks for. What was bound by a scheduler before this one, or by the leader
// while this one stands by, was booked elsewhere: the ledger is rebuilt from bound pods, and this tells the engine the rest
// of what they are. It also tells it what has changed since. Pods in no gang are entered without what they ask for.

// recallPause is how soon after a gang, or what it asks for, has changed.
const recallPause = time.Second

func (c *cluster) runRecall(ctx context.Context, logger klog.Logger) {
	ticker := time.NewTicker(recallPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if c.synced() {
				c.recall(logger)
			}
		}
	}
}

// recall tells the engine what is new of those that hold something. Who is not in the ledger yet is tried again.
func (c *cluster) recall(logger klog.Logger) {
	for _, held := range c.table.Held() {
		if !slices.ContainsFunc(held.Members, func(peer gangs.Peer) bool { return peer.GPUs > 0 && peer.Node != "" }) {
			c.table.Told(held) // it holds nothing in the ledger
			continue
		}
		members := make([]workload.GangMember, 0, len(held.Members))
		for _, peer := range held.Members {
			members = append(members, workload.GangMember{Pod: peer.Pod, GPUs: peer.GPUs, Rank: peer.Rank, Slot: shim.None})
		}
		request, _, annotations := c.reader.GangRequest(held.ID, held.Spec, held.Members[0].Pod, members, c.now(), time.Time{})
		err := c.engine.GangPut(request, annotations)
		if shim.IsCode(err, shim.CodeUnknown) {
			continue // not in the ledger yet
		}
		if err != nil { // it would not have been placed like that; it runs all the same, and repair goes by the defaults
			logger.V(2).Info("The engine does not know what a running gang asks for", "gang", held.ID.String(), "err", err)
		}
		c.table.Told(held)
	}
}
