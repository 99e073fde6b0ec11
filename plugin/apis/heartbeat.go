// SPDX-License-Identifier: Apache-2.0

package apis

// An agent renews a Lease to say that it lives, and writes its GpuNodeStatus when something has changed (reference 4). The label
// tells these Leases from the locks of the same namespace, so that nobody who watches the ones is sent the others.
const (
	HeartbeatNamespace = "frond-system"
	HeartbeatLabel     = "gpu.scheduling/heartbeat"
	HeartbeatPrefix    = "gns-" // and the name of the node
)
