// SPDX-License-Identifier: Apache-2.0

// Package manifests carries the files of this folder inside our programs, so that the lab installs what users install.
package manifests

import "embed"

// Names that the manifests use and programs must know.
const (
	Namespace        = "frond-system"
	SchedulerAccount = "frond-scheduler"
	SchedulerLease   = "frond-scheduler" // of leader election, in Namespace
	AgentAccount     = "frond-agent"
)

// Files are the manifests by their path in this folder.
//
//go:embed namespace.yaml crds rbac policy agent scheduler lab kwok examples
var Files embed.FS
