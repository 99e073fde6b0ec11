/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pods.h - whose process it is: the kubelet puts the UID of a pod into the name of its control group. Owns nothing.
 */
#ifndef FROND_PROBE_PODS_H
#define FROND_PROBE_PODS_H

#include <stdbool.h>
#include <stdint.h>

#define POD_UID_ROOM 40u

/* The pod of PROC/pid; "" when it is in none or has ended. */
void pod_of_process(const char *proc, uint32_t pid, char out[POD_UID_ROOM]);

/* From the text of a cgroup file; false: no pod is named there. */
bool pod_of_cgroup(const char *text, char out[POD_UID_ROOM]);

#endif
