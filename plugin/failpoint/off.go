// SPDX-License-Identifier: Apache-2.0

//go:build !failpoints

package failpoint

// Hit passes the point of that name.
func Hit(string) error { return nil }

// HitNth passes the points of a row of n equal steps of which i are done: NAME-first, NAME-half, NAME-last-but-one and
// NAME-last, all that i has reached: steps that run in parallel may be counted two at a time.
func HitNth(_ string, _, _ int) error { return nil }
