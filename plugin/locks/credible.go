// SPDX-License-Identifier: Apache-2.0

package locks

import "slices"

// Credible are the GPUs of a bound pod by name; nil: it has GPUs, but nobody knows which. gpus is how many its limits give it.
//
// Two places name them. The pod carries them, written by its Binding; whoever may write pods may have rewritten them since, or
// have written them without any Binding. Its node's Lease, which only schedulers write, has entered them before the Binding,
// and perhaps others for a plan that came to nothing. So these count, the first that can be:
//
//   - what it carries, if the Lease has entered all of that;
//   - what the Lease has entered, if that is as many as the pod has: then the pod was rewritten;
//   - what it carries: it was bound without a Lease, or the Lease was lost.
//
// What it carries is nothing if it is another number of GPUs than the pod has.
func Credible(carried, entered []string, gpus int) []string {
	if len(carried) != gpus {
		carried = nil
	}
	unknown := func(id string) bool { return !slices.Contains(entered, id) }
	if len(entered) == gpus && gpus > 0 && (carried == nil || slices.ContainsFunc(carried, unknown)) {
		return entered
	}
	return carried
}
