#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The same input gives the same bytes whoever compiled the engine: builds frond-sim with gcc and clang, each without
# optimisation and with all of it, and compares exit code, stdout and stderr on every fixed case, on random instances and
# on the kept inputs of the fuzz targets: compilers.sh [INSTANCES=300] [SEED=1]. Last line: N passed, N failed (inputs).
set -uo pipefail
cd "$(dirname "$0")/../.."
instances=${1:-300} seed=${2:-1}
out=$PWD/build/compilers
if ! [[ $instances =~ ^[1-9][0-9]*$ && $seed =~ ^[0-9]+$ && $# -le 2 ]]; then
	echo "usage: compilers.sh [INSTANCES=300] [SEED=1]" >&2
	exit 2
fi
verbs=(plan recover defrag preempt reserve) # of the oracle
builds=(gcc-O0 gcc-O3 clang-O0 clang-O3)

build() {
	local name
	for name in "${builds[@]}"; do
		"${name%-*}" -std=c11 "-${name#*-}" -Icsrc/include -Icsrc -D_POSIX_C_SOURCE=200809L \
			csrc/core/*.c csrc/text/*.c csrc/engine/*.c csrc/sim/*.c -o "$out/bin/$name" -lcjson -lyaml || return
	done
	gcc -std=c11 -O1 -D_POSIX_C_SOURCE=200809L test/property/oracle.c -o "$out/bin/oracle" -lcjson -lyaml
}

# The oracle runs a simulator on each instance that it makes: ours keeps it as a case like those of test/sim, then
# answers.
make_instances() {
	local verb
	cat >"$out/bin/keep" <<-KEEP
		#!/usr/bin/env bash
		kept=\$(mktemp -d "$out/instances/XXXXXXXX")
		cp "\$3" "\$kept/fabric"
		cat >"\$kept/stdin"
		printf '%s\n' "\$1" --fabric fabric "\${@:4}" >"\$kept/args"
		exec "$out/bin/gcc-O0" "\$@" <"\$kept/stdin"
	KEEP
	chmod +x "$out/bin/keep"
	mkdir -p "$out/instances"
	for verb in "${verbs[@]}"; do
		"$out/bin/oracle" --sim "$out/bin/keep" --verb "$verb" --count "$instances" --seed "$seed" >"$out/oracle.log" 2>&1
	done
	[ "$(ls "$out/instances" | wc -l)" -ge $((instances * ${#verbs[@]})) ]
}

passed=0 failed=0
# compare NAME STDIN ARGUMENT… — in the current folder.
compare() {
	local name=$1 input=$2 build answer first=
	shift 2
	for build in "${builds[@]}"; do
		answer=$(
			timeout 60 "$out/bin/$build" "$@" <"$input" 2>"$out/err"
			echo "exit $?"
			cat "$out/err"
		)
		if [ -z "$first" ]; then
			first=$answer
		elif [ "$answer" != "$first" ]; then
			echo "$name: $build answers otherwise than ${builds[0]}:"
			diff <(echo "$first") <(echo "$answer") | head -n 10
			failed=$((failed + 1))
			return
		fi
	done
	passed=$((passed + 1))
}

rm -rf "$out"
mkdir -p "$out/bin"
if ! build >"$out/build.log" 2>&1 || ! make_instances; then
	tail -n 20 "$out"/*.log
	echo "0 passed, 1 failed"
	exit 1
fi
top=$PWD
for folder in "$top"/test/sim/cases/*/ "$out"/instances/*/; do
	[ "$(basename "$folder")" != bench-takes-small-clusters ] || continue # it tells times
	cd "$folder" || exit 1
	mapfile -t args <args
	input=/dev/null
	[ -e stdin ] && input=stdin
	compare "$folder" $input "${args[@]}"
done
cd "$top" || exit 1
for file in test/fuzz/corpus/jobs/*; do
	compare "$file" /dev/null plan --cluster 'spine:2 leaf:3 node:4 gpu:8' --jobs "$file"
done
for file in test/fuzz/corpus/fabric/*; do
	compare "$file" /dev/null plan --fabric "$file" --jobs test/sim/cases/eight-nodes-take-two-adjacent-leaves/jobs.yaml
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
