// SPDX-License-Identifier: Apache-2.0

package apis

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConfigName is the one name that a SchedulerConfig or TopologySchedulerConfig is applied under.
const ConfigName = "default"

// ConfigStatus is the status of both kinds of live configuration.
type ConfigStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionApplied of a SchedulerConfig or TopologySchedulerConfig.
const ConditionApplied = "Applied"
