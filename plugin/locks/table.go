// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Limits of what is read from a Lease. A node has 16 GPUs, or a few hundred slices of them; the API server allows
// 256 KiB of annotations.
const (
	maxEntries = 4096
	maxID      = 253
	maxUID     = 64
	maxShown   = 80 // of a value, in messages
)

// table is the content of a Lease.
type table struct {
	owners map[string]types.UID
	pods   map[types.UID]note
	bad    map[string]json.RawMessage // entries that cannot be read, kept as they are until Compare
	err    *LeaseError                // nil: all of it could be read
	whole  bool                       // with err: nothing could be read
	alien  bool                       // with err: it is not ours at all, and is never written
}

// note is what a Lease says of an owner.
type note struct {
	Pod string `json:"pod"` // NAMESPACE/NAME
	// By is the holder that took the GPUs; "" once several have: then nobody knows alone that no Binding is under way.
	By string `json:"by,omitempty"`
	// Revoked: the GPUs are about to be freed although the pod is pending. Who wants to bind has to take them again.
	Revoked bool `json:"revoked,omitempty"`
}

// gpus that the Lease has entered for a pod, in the order of their names.
func (t table) gpus(uid types.UID) (list []string) {
	for gpu, owner := range t.owners {
		if owner == uid {
			list = append(list, gpu)
		}
	}
	slices.Sort(list)
	return list
}

// LeaseError is a Lease that does not say what a lock must say.
type LeaseError struct {
	Lease      string // NAMESPACE/NAME
	Annotation string
	Found      string
	Allowed    string
}

func (e *LeaseError) Error() string {
	return fmt.Sprintf("Lease %s: annotation %s: found %s; allowed is %s", e.Lease, e.Annotation, e.Found, e.Allowed)
}

const (
	allowedOwners = `a JSON object of at most 4096 entries, GPU id → pod UID, such as {"node-1-gpu-0":"0ad9e2a4-61b8-4b6f-8f55-1f7d5f1c2e3a"}`
	allowedPods   = `a JSON object, pod UID → {"pod":"NAMESPACE/NAME"}`
	allowedEntry  = "a GPU id of at most 253 letters, digits and -._:/ that occurs once, with a pod UID"
	allowedLock   = "only with this annotation, or without leaseDurationSeconds and renewTime, a Lease of a node is ours"
)

func shown(text string) string {
	if len(text) > maxShown {
		return fmt.Sprintf("%q… (%d bytes)", text[:maxShown], len(text))
	}
	return fmt.Sprintf("%q", text)
}

// foreign: a Lease for leader election that happens to be named like a node.
func foreign(lease *coordinationv1.Lease) bool {
	_, ours := lease.Annotations[OwnersAnnotation]
	return !ours && lease.Labels[Label] == "" && (lease.Spec.RenewTime != nil || lease.Spec.LeaseDurationSeconds != nil)
}

// parse reads a Lease that anybody may have edited.
func parse(lease *coordinationv1.Lease) table {
	t := table{owners: map[string]types.UID{}, pods: map[types.UID]note{}, bad: map[string]json.RawMessage{}}
	fail := func(annotation, found, allowed string) {
		if t.err == nil {
			t.err = &LeaseError{lease.Namespace + "/" + lease.Name, annotation, found, allowed}
		}
	}
	text, there := lease.Annotations[OwnersAnnotation]
	switch {
	case foreign(lease):
		fail(OwnersAnnotation, "a Lease with leaseDurationSeconds or renewTime", allowedLock)
		t.whole, t.alien = true, true
		return t
	case !there:
		// Ours are never without: an empty one would make every GPU of the node free.
		fail(OwnersAnnotation, "nothing", allowedOwners)
		t.whole = true
		return t
	}
	entries, err := readObject(text)
	if err != nil {
		fail(OwnersAnnotation, fmt.Sprintf("%s (%v)", shown(text), err), allowedOwners)
		t.whole = true
		return t
	}
	for _, gpu := range slices.Sorted(maps.Keys(entries)) {
		var owner string
		raw := entries[gpu]
		if json.Unmarshal(raw, &owner) != nil || !plausible(gpu, maxID) || !plausible(owner, maxUID) {
			t.bad[gpu] = raw
			fail(OwnersAnnotation, shown(gpu)+": "+shown(string(raw)), allowedEntry)
			continue
		}
		t.owners[gpu] = types.UID(owner)
	}
	// Without its note an owner is only harder to look up: that blocks nothing.
	notes, err := readObject(lease.Annotations[PodsAnnotation])
	if err != nil && len(t.owners) > 0 {
		fail(PodsAnnotation, fmt.Sprintf("%s (%v)", shown(lease.Annotations[PodsAnnotation]), err), allowedPods)
	}
	for _, uid := range slices.Sorted(maps.Keys(notes)) {
		var n note
		if err := json.Unmarshal(notes[uid], &n); err != nil || strings.Count(n.Pod, "/") != 1 {
			fail(PodsAnnotation, shown(uid)+": "+shown(string(notes[uid])), allowedPods)
			continue
		}
		t.pods[types.UID(uid)] = n
	}
	t.trim()
	return t
}

// readObject reads a JSON object entry by entry. A key which occurs twice, with different values, gets a list of them.
func readObject(text string) (map[string]json.RawMessage, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	entries := map[string]json.RawMessage{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		name := key.(string) // the decoder lets no other key through
		if old, again := entries[name]; again && !bytes.Equal(old, value) {
			value = slices.Concat([]byte("["), old, []byte(","), value, []byte("]"))
		}
		if entries[name] = value; len(entries) > maxEntries {
			return nil, fmt.Errorf("more than %d entries", maxEntries)
		}
	}
	if _, err := decoder.Token(); err != nil { // the closing brace
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("something follows the object")
	}
	return entries, nil
}

// plausible: made of the characters of names and UUIDs. MIG devices have slashes and colons in theirs.
func plausible(id string, most int) bool {
	if id == "" || len(id) > most {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._:/", r))
	})
}

func (t table) clone() table {
	t.owners, t.pods, t.bad = maps.Clone(t.owners), maps.Clone(t.pods), maps.Clone(t.bad)
	if t.owners == nil {
		t.owners, t.pods, t.bad = map[string]types.UID{}, map[types.UID]note{}, map[string]json.RawMessage{}
	}
	return t
}

// trim forgets notes of pods that own nothing.
func (t table) trim() {
	used := map[types.UID]bool{}
	for _, uid := range t.owners {
		used[uid] = true
	}
	maps.DeleteFunc(t.pods, func(uid types.UID, _ note) bool { return !used[uid] })
}

func (t table) equal(other table) bool {
	return maps.Equal(t.owners, other.owners) && maps.Equal(t.pods, other.pods) && len(t.bad) == len(other.bad) && (t.err == nil) == (other.err == nil)
}

// write puts the content into a Lease. Keys come out sorted.
func (t table) write(lease *coordinationv1.Lease) error {
	t.trim()
	all := make(map[string]any, len(t.owners)+len(t.bad))
	for gpu, raw := range t.bad {
		all[gpu] = raw
	}
	for gpu, uid := range t.owners {
		all[gpu] = uid
	}
	owners, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("write annotation %s: %w", OwnersAnnotation, err)
	}
	pods, err := json.Marshal(t.pods)
	if err != nil {
		return fmt.Errorf("write annotation %s: %w", PodsAnnotation, err)
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	if lease.Labels == nil {
		lease.Labels = map[string]string{}
	}
	lease.Annotations[OwnersAnnotation], lease.Annotations[PodsAnnotation] = string(owners), string(pods)
	lease.Labels[Label] = labelValue
	return nil
}

// readable is the newest content that could be read.
func (n *node) readable() table {
	if n.lease == nil || n.table.whole {
		return n.last
	}
	return n.table
}
