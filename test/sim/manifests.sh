#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random Kubernetes manifests and the same jobs written by hand must have the same answer:
#   test/sim/manifests.sh BINARY [COUNT [SEED]]
# The generator keeps both forms side by side, so it shares no code with what reads them. Last line: N passed, N failed; a
# failure names its seed.
set -uo pipefail

[ $# -ge 1 ] || { echo "usage: $0 BINARY [COUNT [SEED]]" >&2; exit 2; }
binary=$(realpath "$1") || exit 2
count=${2:-300}
seed=${3:-${FROND_SEED:-$(date +%s)}}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
echo "seed $seed"

# Writes DIR/manifests.yaml and DIR/jobs.yaml.
generate() {
	awk -v seed="$1" -v dir="$2" '
	function roll(n) { return int(rand() * n) }
	function wishes(level,    text, i, n, key, value) { # annotations of one object; remembers them by level
		text = ""
		n = roll(3)
		split("placement-strategy topology-mode recovery preferred-domain", key, " ")
		for (i = 0; i < n; i++) {
			k = 1 + roll(4)
			if ((level, k) in wish) continue
			value = k == 1 ? strategies[1 + roll(3)] : k == 2 ? modes[1 + roll(3)] : k == 3 ? policies[1 + roll(3)] : "leaf-" 1 + roll(5)
			wish[level, k] = "topology.scheduler/" key[k] ": " value
			text = text (text == "" ? "" : ", ") wish[level, k]
		}
		return text
	}
	function nearest(levels,    k, level, text) { # of each key the lowest level that has it
		text = ""
		for (k = 1; k <= 4; k++)
			for (level = 0; level < levels; level++)
				if ((level, k) in wish) { text = text (text == "" ? "" : ", ") wish[level, k]; break }
		return text
	}
	function forget(    i) { for (i in wish) delete wish[i] }
	function template(gpus, notes, labels,    limits) {
		limits = gpus == 0 ? "{}" : "{limits: {" (roll(2) ? "nvidia.com/gpu: " gpus : "amd.com/gpu: \"" gpus "\"") "}}"
		return "{metadata: {annotations: {" notes "}, labels: {" labels "}}, spec: {containers: [{name: c, resources: " limits "}]}}"
	}
	function object(version, kind, name, notes, spec) {
		if (in_list) printf "- {apiVersion: %s, kind: %s, metadata: {name: %s, annotations: {%s}}, spec: %s}\n", version, kind, name, notes, spec > manifests
		else printf "---\napiVersion: %s\nkind: %s\nmetadata: {name: %s, annotations: {%s}}\nspec: %s\n", version, kind, name, notes, spec > manifests
	}
	function by_hand(name, members, gpus, least, notes) {
		printf "- {name: %s, members: %d, gpusPerMember: %s, minMember: %d, annotations: {%s}}\n", name, members, gpus, least, notes > jobs
	}
	function repeat(number, times, text,    i) {
		for (i = 0; i < times; i++) text = text (text == "" ? "" : ", ") number
		return text
	}
	function a_job(name,    pods, gpus, own, notes, count, i) {
		pods = 1 + roll(6); gpus = 1 + roll(8); own = wishes(0); notes = wishes(1); count = roll(2)
		if (count) notes = notes (notes == "" ? "" : ", ") "topology.scheduler/gpu-count: \"" pods * gpus "\""
		object("batch/v1", "Job", name, notes, "{parallelism: " (roll(2) ? pods ", completions: " pods + roll(3) : pods + 2 ", completions: " pods) ", template: " template(gpus, own, "") "}")
		notes = nearest(2)
		if (count) notes = notes (notes == "" ? "" : ", ") "topology.scheduler/gpu-count: \"" pods * gpus "\""
		if (count && pods > 1) by_hand(name, pods, gpus, pods, notes)
		else for (i = 0; i < pods; i++) by_hand(pods == 1 ? name : name "-" i, 1, gpus, 1, notes)
	}
	function a_jobset(name,    parts, p, sets, own, job, notes, list, gpus, members, spec, i, step, each, replicas, per) {
		parts = 1 + roll(3); step = roll(4) == 0; notes = wishes(2); list = ""; members = 0; spec = ""
		for (p = 0; p < parts; p++) {
			delete_level(0); delete_level(1)
			replicas = 1 + roll(2); per = 1 + roll(3); gpus = p == 0 && parts > 1 ? roll(5) : 1 + roll(8)
			own = wishes(0); job = wishes(1)
			if (p == 0 || step) lead = nearest(3)
			spec = spec (spec == "" ? "" : ", ") "{name: part" p ", replicas: " replicas ", template: {metadata: {annotations: {" job "}}, spec: {parallelism: " per ", template: " template(gpus, own, "") "}}}"
			if (step && gpus == 0) { step = 0; restart = 1 }
			list = repeat(gpus, replicas * per, list); members += replicas * per
			if (step) held[p] = "- {name: " name "-part" p ", members: " replicas * per ", gpusPerMember: " gpus ", annotations: {" lead "}}"
			if (p == 0) first = nearest(3)
		}
		if (!step) by_hand(name, members, "[" list "]", members, first)
		else for (p = 0; p < parts; p++) print held[p] > jobs
		object("jobset.x-k8s.io/v1alpha2", "JobSet", name, notes, "{" (step ? "startupPolicy: {startupPolicyOrder: InOrder}, " : "") "replicatedJobs: [" spec "]}")
	}
	function delete_level(level,    k) { for (k = 1; k <= 4; k++) delete wish[level, k] }
	function a_training(name,    kind, notes, own, gpus, workers, master, least, spec, all, kinds, fields) {
		split("PyTorchJob TFJob XGBoostJob JAXJob", kinds, " "); split("pytorch tf xgb jax", fields, " ")
		kind = 1 + roll(4); notes = wishes(1); own = wishes(0); lead = nearest(2)
		master = roll(5); workers = 1 + roll(4); gpus = 1 + roll(8); all = workers + 1
		least = roll(2) ? 1 + roll(all) : 0
		spec = "Worker: {replicas: " workers ", template: " template(gpus, "", "") "}"
		spec = roll(2) ? spec ", Master: {template: " template(master, own, "") "}" : "Master: {replicas: 1, template: " template(master, own, "") "}, " spec
		object("kubeflow.org/v1", kinds[kind], name, notes, "{" (least ? "runPolicy: {schedulingPolicy: {minAvailable: " least "}}, " : "") fields[kind] "ReplicaSpecs: {" spec "}}")
		by_hand(name, all, "[" repeat(gpus, workers, master) "]", least ? least : all, lead)
	}
	function a_group(name,    pods, i, least, own, gpus, at, order, list, t, j, text) { # pods in any order, ranks by name: 2 before 10
		pods = 1 + roll(5); least = 1 + roll(pods); list = ""
		for (i = 0; i < pods; i++) { order[i] = i; size[i] = 1 + roll(8); forget(); text = wishes(0); note[i] = text; if (i == 0) lead = nearest(1) }
		for (i = pods - 1; i > 0; i--) { j = roll(i + 1); t = order[i]; order[i] = order[j]; order[j] = t }
		at = roll(pods + 1)
		for (i = 0; i <= pods; i++) {
			if (i == at) object("scheduling.x-k8s.io/v1alpha1", "PodGroup", name, "", "{minMember: " least "}")
			if (i == pods) break
			t = template(size[order[i]], "", ""); sub(/.*spec: /, "", t); sub(/}$/, "", t)
			printf "%s{apiVersion: v1, kind: Pod, metadata: {name: %s-%d, labels: {%s: %s}, annotations: {%s}}, spec: %s}\n", in_list ? "- " : "---\n", name, order[i] * 7 + 2, \
				roll(2) ? "scheduling.x-k8s.io/pod-group" : "pod-group.scheduling.sigs.k8s.io", name, note[order[i]], t > manifests
		}
		for (i = 0; i < pods; i++) list = list (i ? ", " : "") size[i]
		by_hand(name, pods, "[" list "]", least, lead)
	}
	function a_pod(name,    gpus, own, t) {
		gpus = 1 + roll(8); own = wishes(0); t = template(gpus, "", ""); sub(/.*spec: /, "", t); sub(/}$/, "", t)
		object("v1", "Pod", name, own, t)
		by_hand(name, 1, gpus, 1, nearest(1))
	}
	BEGIN {
		srand(seed)
		manifests = dir "/manifests.yaml"; jobs = dir "/jobs.yaml"
		split("consolidated distributed balanced", strategies, " "); split("Required Preferred Ignore", modes, " "); split("Replace MoveGang Wait", policies, " ")
		in_list = roll(3) == 0
		if (in_list) print "apiVersion: v1\nkind: List\nitems:" > manifests
		print "jobs:" > jobs
		n = 1 + roll(5)
		for (o = 0; o < n; o++) {
			forget()
			kind = roll(5)
			if (kind == 0) a_job("job" o)
			else if (kind == 1) a_jobset("set" o)
			else if (kind == 2) a_training("train" o)
			else if (kind == 3) a_group("group" o)
			else a_pod("pod" o)
		}
	}'
}

for ((i = 0; i < count; i++)); do
	generate $((seed + i)) "$scratch"
	cluster="spine:$((1 + i % 2)) leaf:$((1 + i % 3)) node:$((2 + i % 4)) gpu:8"
	same=1
	for form in manifests jobs; do
		"$binary" plan --cluster "$cluster" --jobs "$scratch/$form.yaml" >"$scratch/$form.out" 2>&1
		echo "exit $?" >>"$scratch/$form.out"
	done
	cmp -s "$scratch/manifests.out" "$scratch/jobs.out" && grep -q '^exit 0' "$scratch/jobs.out" || same=0
	if [ $same = 1 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED seed $((seed + i)), cluster '$cluster'"
		diff "$scratch/manifests.out" "$scratch/jobs.out" | head -6
		cat "$scratch/manifests.yaml" "$scratch/jobs.yaml"
	fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
