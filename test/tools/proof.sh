#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The long proofs in full. Every finished piece leaves a file under build/proof/, so a run that was stopped goes on where
# it was. A rebuilt engine starts its pieces afresh, a rebuilt scheduler those on a cluster, a fuzz target that changed its
# own. Writes the table of docs/proof.md. PARTS='engine fuzz agent host' runs some of them, without the table, so that two
# may run at the same time.
set -euo pipefail
cd "$(dirname "$0")/../.."
# The instances of the oracle run without sanitizers, which make test has on; asserts are on in both.
oracle=build/rel/test/property/oracle sim=bin/frond-sim slowest=build/rel/test/slowest/slowest best=build/san/test/unit/test_place_best model=build/san/test/unit/test_model
fuzz_seconds=${FUZZ_SECONDS:-600}
state=build/proof
mkdir -p $state

make --no-print-directory bin/scheduler-faults build/san/frond-agent fakes
# part NAME PROGRAM… — begins a part of the proof; what other builds of these programs have left of it is forgotten
part() {
	local version
	dir=$state/$1
	shift
	version=$(cat "$@" | sha256sum | cut -c1-16)
	if [ "$(cat "$dir/version" 2>/dev/null)" != "$version" ]; then
		rm -rf "$dir"
		mkdir -p "$dir"
		echo "$version" >"$dir/version"
		od -An -N4 -tu4 /dev/urandom | tr -d ' ' >"$dir/seed"
	fi
	seed=$(cat "$dir/seed")
}

# piece NAME COMMAND… — once per version; its output is kept, a failure stops the run.
piece() {
	local name=$1
	shift
	if [ -e "$dir/$name.done" ]; then
		echo "proof: $name was done before"
		return
	fi
	echo "proof: $name"
	if ! "$@" >"$dir/$name.log" 2>&1; then
		tail -n 30 "$dir/$name.log"
		echo "proof: $name failed: $dir/$name.log"
		exit 1
	fi
	mv "$dir/$name.log" "$dir/$name.done"
}

data=${1:-}
prove_engine() {
	part engine $oracle $sim $slowest $best $model bin/libfrond.so
	for chunk in $(seq 0 29); do
		piece "oracle-$chunk" $oracle --sim $sim --count 1000 --seed $((seed + chunk))
	done
	for chunk in $(seq 0 9); do
		piece "recover-$chunk" $oracle --sim $sim --verb recover --count 1000 --seed $((seed + chunk))
		piece "preempt-$chunk" $oracle --sim $sim --verb preempt --count 1000 --seed $((seed + chunk))
		piece "reserve-$chunk" $oracle --sim $sim --verb reserve --count 500 --seed $((seed + chunk))
		piece "defrag-$chunk" $oracle --sim $sim --verb defrag --count 1000 --seed $((seed + chunk))
	done
	for chunk in $(seq 0 9); do # half of its gangs have exceptions, and some 3.3 plans come to a step
		piece "exceptions-$chunk" env FROND_PLACE_STEPS=1800 FROND_SEED=$((seed + 10000 * chunk)) $best
	done
	for chunk in $(seq 0 39); do
		piece "slowest-$chunk" $slowest --calls 25000 --seed $((seed + chunk)) --hold
	done
	piece model env FROND_MODEL_CALLS=1000000 FROND_SEED="$seed" $model
	piece coverage test/tools/coverage.sh
	piece compilers test/tools/compilers.sh 1000
	piece mutants test/tools/mutants.sh 200
	if [ -n "$data" ]; then
		piece traces test/tools/traces.sh "$data"
	fi
	piece engine-bench test/tools/bench.sh
}

# fuzzed TARGET… — at the same time: each keeps one core busy
fuzzed() {
	local target pids=() pid
	for target in "$@"; do
		(part "fuzz-$target" "build/fuzz/bin/$target" && piece "fuzz-$target" test/tools/fuzz.sh "$fuzz_seconds" "$target") &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid"
	done
}

prove_fuzz() {
	test/tools/fuzz.sh --build
	ls test/fuzz/fuzz_*.c | sed 's#.*/fuzz_##; s#\.c$##' >$state/targets
	while read -r first && { read -r second || true; }; do
		fuzzed "$first" ${second:+"$second"}
	done <$state/targets
}

prove_agent() {
	part agent bin/frond-agent build/san/frond-agent
	piece agent-long env FROND_AGENT_CYCLES=100000 FROND_AGENT_ERRORS=10000 FROND_AGENT_DOWN_S=300 FROND_SEED="$seed" \
		test/agent/run.py build/san/frond-agent bin/frond-agent memory_stays_flat random_error_codes api_is_down
	piece agent-idle test/agent/idle.py bin/frond-agent 60
}

# faults NAME RUN SEED — the tests of test/faults that match RUN, in full
faults() {
	piece "$1" env FROND_FULL=1 FROND_SEED="$3" go test -v -count=1 -timeout 60m -run "$2" ./test/faults
}

# The newest patch of each older minor version that the scheduler can emulate and that is to be had as a module.
old_versions='v1.34.4 v1.35.4 v1.36.3'

# old_kube VERSION — test/e2e on the control plane of that release, with our programs beside it
old_kube() {
	local folder=build/kube/$1
	piece "kube-build-$1" test/tools/oldkube.sh "$1" "$folder"
	find bin -maxdepth 1 -type f ! -name kube-apiserver ! -name kube-controller-manager -exec ln -f {} "$folder" \;
	cp -r bin/machines "$folder"
	piece "kube-$1" env FROND_BIN="$folder" FROND_SEED="$seed" go test -v -count=1 -timeout 30m ./test/e2e
}

prove_host() {
	part host bin/scheduler bin/scheduler-faults bin/lab bin/libfrond.so
	for version in $old_versions; do
		old_kube "$version"
	done
	piece nodes env FROND_FULL=1 FROND_NODES_ROUNDS=28 FROND_SEED="$seed" go test -v -count=1 -timeout 30m ./test/nodes
	piece gangs env FROND_E2E_GANGS=200 FROND_SEED="$seed" go test -v -count=1 -timeout 30m -run 'Interleaved|TwoGangs' ./test/e2e
	piece lifecycle go test -v -count=1 -timeout 30m -run TestAnyOrderOfEvents ./plugin/gangs -rapid.checks=200000 -rapid.steps=100 -rapid.seed="$seed"
	faults sixty TestGangsOfSixtyPercent "$seed"
	faults taken 'TestHalfGang|TestOldLeader' "$seed"
	faults input 'TestPod|TestMinMember|TestDuplicate|TestNode|TestAPIServerAway' "$seed"
	for kind in drop-reply conflict too-many error delay cut-watches all; do
		faults "api-$kind" "TestFaultyAPI/^$kind\$" "$seed"
	done
	for point in planned reserved permitted gang-locked lock-first lock-half lock-last bind-first bind-half bind-last-but-one bind-last status-write unreserve lease-lost; do
		faults "crash-$point" "TestCrashMatrix/^$point\$" "$seed"
	done
	for chunk in $(seq 0 4); do
		faults "leaders-$chunk" TestTwoLeaders $((seed + chunk))
	done
	# What make test runs without the race detector, because that compiles Kubernetes once more.
	piece race go test -v -race -count=1 -timeout 60m $(test/tools/gosuites.sh go-host)
	piece bench go test -v -count=1 -timeout 30m -run '^$' -bench . -benchtime 1x ./test/bench
}

for name in ${PARTS:-engine fuzz agent host}; do
	declare -F "prove_$name" >/dev/null || { echo "proof: PARTS: must be of engine, fuzz, agent, host, got $name"; exit 2; }
	"prove_$name"
done
if [ -n "${PARTS:-}" ]; then
	echo "proof: done: $PARTS"
	exit
fi

# sum PREFIX — over the last lines "N passed, N failed" of its pieces
sum() {
	cat $state/*/"$1"*.done 2>/dev/null | awk '/^[0-9]+ passed, [0-9]+ failed$/{p+=$1; f+=$3} END{printf "%d passed, %d failed", p, f}'
}
last() {
	tail -n 1 $state/*/"$1".done 2>/dev/null || echo "not run"
}
# runs PREFIX DEPTH — passed tests of its pieces, by how deep their names are
runs() {
	cat $state/*/"$1"*.done 2>/dev/null | grep -cE "^ *--- PASS: [^/ ]+(/[^/ ]+){$2} " || true
}
# metric BENCHMARK NAME — from its line
metric() {
	awk -v bench="/$1-[0-9]+$" -v name="$2" '$1 ~ bench {for (i = 2; i <= NF; i++) if ($i == name) value = $(i-1)} END{print value == "" ? "?" : value}' $state/host/bench.done
}
greedy=$(cat $state/engine/oracle-*.done | awk '/defeat/ && match($0, /[0-9]+ of [0-9]+/){split(substr($0, RSTART, RLENGTH), n, " of "); a+=n[1]; b+=n[2]} END{if (b) printf "%.0f %%", 100*a/b; else print "?"}')
watched=$(sed -n 's/.*watched \(.*\)/\1/p' $state/host/gangs.done | tail -1)
ratio=$(awk '/plugin\/plain/{for(i=2;i<=NF;i++) if($i=="plugin/plain") print $(i-1)}' $state/host/bench.done)
{
	cat <<TABLE
# Proof

Written by \`make proof\` on $(date -u +%Y-%m-%d), engine $(cat $state/engine/version), seed $(cat $state/engine/seed); programs $(cat $state/host/version), seed $(cat $state/host/seed).

| what | how much | result |
|---|---|---|
| plans against the brute-force oracle | 30,000 random instances, $greedy of them defeat a greedy first-fit | $(sum oracle-) |
| plans with exceptions, several sizes, bound members, caps, in one process with the judge | $(awk '/ placed \(/{for (i = 1; i <= NF; i++) if ($i ~ /^(placed|waiting,|never,|refused;)$/) n += $(i-1)} END{print n + 0}' $state/engine/exceptions-*.done) plans, about half of them with exceptions | $(awk '/^[0-9]+ Tests/{t += $1 - $3; f += $3} END{print t + 0 " passed, " f + 0 " failed"}' $state/engine/exceptions-*.done) |
| recovery moves and their lower bound against brute force | 10,000 random instances | $(sum recover-) |
| victims, their cost and domain against brute force | 10,000 random instances | $(sum preempt-) |
| reservation windows against every end and every domain | 5,000 random instances | $(sum reserve-) |
| defragmentation moves against brute force | 10,000 random instances | $(sum defrag-) |
| random ABI calls against a simple model, \`check\` after each | 1,000,000 | $(awk '/^[0-9]+ Tests/{print $1-$3 " passed, " $3 " failed"}' $state/engine/model.done) |
| the slowest of random calls of every kind, clusters of 100 to 100,000 nodes of all shapes, against reference 9 | 1,000,000 | $(sum slowest-) |
| line coverage of csrc/core, csrc/text and csrc/engine | unit suites, cases, corpus, 300 instances | $(grep -E 'csrc/(core|text|engine)( |:).*%' $state/engine/coverage.done | tail -3 | tr '\n' ';' | sed 's/;$//') |
| random small mutations of the core that the tests notice | 200 | $(sed -n 's/^mutants: \([0-9]* noticed.*\)/\1/p' $state/engine/mutants.done | tail -1) |
| same bytes with gcc and clang, -O0 and -O3 | all cases and 1,000 instances | $(last compilers) |
| libFuzzer, $fuzz_seconds seconds a target, address and undefined-behaviour sanitizers | $(ls test/fuzz/fuzz_*.c | wc -l) targets | $(sum fuzz-) |
| interleaved gangs on a full cluster of 48 nodes, watched over the API | 200 gangs | $watched |
| test/e2e on the released API servers $(echo $old_versions | sed 's/ /, /g') | every test of it | $(runs kube-v 0) tests passed |
| the lifecycle of gangs: events in any order, duplicate, late, lost; invariants after each | 200,000 walks of some 100 events | $(runs lifecycle 0) passed |
| scheduler killed at 14 steps × gangs of 4, 16 and 64 × 3 seeds, healed in 30 s | 126 runs | $(runs crash- 3) passed |
| gangs while the API server loses replies, answers 409, 429, 500, is slow, cuts watches | 500 a kind, 7 kinds | $(runs api- 1) kinds passed |
| the leader is paused for 20 s and wakes up | 50 rounds | $(($(runs leaders- 0) * 10)) passed |
| gangs of 60 % of the cluster, interleaved | 50 | $([ "$(runs sixty 0)" = 1 ] && echo all ran) |
| an old leader with a decision in hand; a half gang whose other places are taken | 2 | $(runs taken 0) passed |
| bad input and an API server that goes away | pods, nodes, groups under way | $(runs input 0) tests passed |
| gang of 512 nodes on 1,000: last pod to last binding | one run | $(metric gang-of-512 last-pod-to-bound-s) s, $(metric gang-of-512 cpu-s) CPU seconds; with upstream's nominations $(metric gang-of-512-with-nominations last-pod-to-bound-s) s, without locks $(metric gang-of-512-without-locks last-pod-to-bound-s) s |
| impossible gang on 1,000 nodes: last pod to reason | one run | $(metric impossible-gang last-pod-to-reason-s) s, then $(metric impossible-gang cores-waiting) cores |
| 500 pods of the default profile, time with the plugin loaded ÷ without, medians of 3 | one run | $ratio |
| plugin and scheduler program under the race detector | every test of \`make test\` that upstream's scheduler is linked into | $(runs race 0) tests passed |
| agent: 100,000 looks, 10,000 random error codes of the driver, API server away for 5 minutes | never exits, never says anything wrong, memory flat | $(sum agent-long) |
| agent, idle | one minute | $(awk -F'|' '/^\| (memory|processor)/{printf "%s%s", sep, $3; sep = ";"}' $state/agent/agent-idle.done) |
| agents, fake machines and scheduler: GPU sets against brute force, a GPU dies, a link degrades, an agent is silent, rights | $(sed -n 's/.*seed \([0-9]*\).*/seed \1/p' $state/host/nodes.done | head -1) | $(runs nodes 0) tests passed |

## The slowest calls

Random clusters and calls, a third of them small changes of the slowest so far (\`test/slowest\`). Processor time, the least of three on an engine that remembers nothing. Each is made again by \`build/rel/test/slowest/slowest --call 'INPUT'\`.

| ms | may take | call | answer | input |
|---|---|---|---|---|
$(cat $state/engine/slowest-*.done | awk -F'|' '/^\| (> )?[0-9]/{ms = $2; sub(/>/, "", ms); print ms / $3 "\t" $0}' | sort -rn | cut -f2- | head -n 10)

## The engine at 100,000 nodes

$(cat $state/engine/engine-bench.done)
TABLE
	if [ -e $state/engine/traces.done ]; then
		printf '\n## Real topologies and traces\n\n'
		cat $state/engine/traces.done
	fi
} >docs/proof.md
echo "proof: done; the table is in docs/proof.md"
