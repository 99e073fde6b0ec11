// SPDX-License-Identifier: Apache-2.0

// Package failpoint marks the places in the scheduler where a test may kill it, hold it up or make it fail. A normal
// build has nothing of it: Hit and HitNth are empty and inlined. With `-tags failpoints`, which only bin/scheduler-faults
// is built with, they do what the variable FROND_FAILPOINTS asks for:
//
//	FROND_FAILPOINTS="bind-half=kill,reserved=sleep:200ms@3,lock-first=error@2"
//
// Each entry is NAME=ACTION[@N]: at the N-th time that NAME is passed (the first, unless said), and only then, the
// process kills itself with SIGKILL, sleeps, or the call returns an error. What is written there wrongly ends the process
// at once, with the entry and what is allowed: a test that asks for a fault must not pass without one.
package failpoint
