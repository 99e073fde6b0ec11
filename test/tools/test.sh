#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that CI runs, cheapest first. Each suite writes build/reports/NAME.log; the counts come from the runners'
# own reports, and a suite that reports nothing counts as failed. Last line: N passed, N failed.
# test.sh --check runs what takes seconds, and nothing of Kubernetes.
set -uo pipefail
cd "$(dirname "$0")/../.."
case ${1:-} in
'') only_check=false reports=build/reports ;;
--check) only_check=true reports=build/check ;;
*)
	echo "usage: test.sh [--check]" >&2
	exit 2
	;;
esac
rm -rf "$reports"
mkdir -p "$reports"
passed=0 failed=0 failures=()
start=$SECONDS

# However this run ends, what it started ends with it: a suite is told when we die, a test binary when its go command
# dies, and a lab when its test binary does.
trap 'exit 130' INT TERM
together() {
	if [ "$(type -t "$1")" = function ]; then
		"$@" &
	else
		setpriv --pdeathsig TERM -- "$@" &
	fi
	wait $! # in the background, so that a signal is heard at once
}

# suite NAME KIND COMMAND… — runs it, counts by KIND: unity, plain (last line "N passed, N failed"), go (go test -json),
# check (one check, by exit code).
suite() {
	local name=$1 kind=$2 log=$reports/$1.log begin=$SECONDS code ok=0 bad=0
	shift 2
	printf '%-28s ' "$name"
	together "$@" >"$log" 2>&1
	code=$?
	case $kind in
	unity)
		read -r ok bad < <(awk '/^[0-9]+ Tests [0-9]+ Failures [0-9]+ Ignored/{t+=$1; f+=$3+$5} END{print t-f+0, f+0}' "$log")
		;;
	plain)
		read -r ok bad < <(awk '/^[0-9]+ passed, [0-9]+ failed$/{p=$1; f=$3} END{print p+0, f+0}' "$log")
		;;
	go)
		ok=$(grep -c '"Action":"pass".*"Test":' "$log")
		bad=$(grep -c '"Action":"fail".*"Test":' "$log")
		;;
	check)
		if [ $code = 0 ]; then ok=1; else bad=1; fi
		;;
	esac
	if [ $((ok + bad)) = 0 ] || { [ $code != 0 ] && [ "$bad" = 0 ]; }; then
		bad=$((bad + 1)) # reported nothing, or failed without saying which
	fi
	passed=$((passed + ok))
	failed=$((failed + bad))
	printf '%5d passed %3d failed %4d s\n' "$ok" "$bad" $((SECONDS - begin))
	if [ "$bad" != 0 ]; then
		failures+=("$log")
		if [ $kind = go ]; then
			grep -h '"Action":"output"' "$log" | sed -n 's/.*"Output":"\(.*\)\\n"}$/\1/p' | grep -vE '^(=== |--- PASS|PASS)' | tail -n 40
		else
			tail -n 25 "$log"
		fi
	fi
}

# go_suites — those of gosuites.sh, which knows every test file
go_suites() {
	local lines line name words word flags packages
	if ! lines=$(test/tools/gosuites.sh); then
		echo "test/tools/gosuites.sh failed: see above"
		failed=$((failed + 1))
		return
	fi
	mapfile -t lines <<<"$lines"
	for line in "${lines[@]}"; do
		read -r name words <<<"$line"
		flags=() packages=()
		for word in $words; do
			case $word in
			-*) flags+=("$word") ;;
			*) packages+=("$word") ;;
			esac
		done
		suite "$name" go go test "${flags[@]}" -json -count=1 -exec 'setpriv --pdeathsig KILL --' "${packages[@]}"
	done
}

# finish — the last lines
finish() {
	echo
	if [ ${#failures[@]} -gt 0 ]; then
		echo "failed; look at: ${failures[*]}"
	fi
	echo "took $((SECONDS - start)) s"
	echo "$passed passed, $failed failed"
	[ $failed = 0 ]
	exit
}

headers_alone() {
	local header nvml
	nvml=$(make --no-print-directory --eval 'print-nvml:;@echo $(NVML)' print-nvml) || return
	for header in $(git ls-files -co --exclude-standard 'csrc/*.h'); do
		gcc -std=c11 -Wall -Wextra -Werror -Icsrc/include -Icsrc -D_POSIX_C_SOURCE=200809L -isystem "$nvml" -fsyntax-only -x c "$header" || return 1
	done
}

one_export() { # libfrond.so exports frond_abi_get and nothing else
	local exports
	exports=$(nm -D --defined-only bin/libfrond.so | awk '{print $3}')
	echo "$exports"
	[ "$exports" = frond_abi_get ]
}

one_cgo() { # shim.go is the only file with import "C"
	local files
	files=$(grep -l '^import "C"$' $(git ls-files -co --exclude-standard '*.go'))
	echo "$files"
	[ "$files" = shim/shim.go ]
}

formatted() {
	local unformatted
	unformatted=$(gofmt -l plugin shim test manifests)
	echo "$unformatted"
	[ -z "$unformatted" ] && clang-format --dry-run --Werror $(git ls-files -co --exclude-standard '*.c' '*.h')
}

echo "C: building with address and undefined-behaviour sanitizers"
together make --no-print-directory -j2 engine units >"$reports/build-c.log" 2>&1 || {
	tail -n 40 "$reports/build-c.log"
	echo "the C build failed: $reports/build-c.log"
	echo "0 passed, 1 failed"
	exit 1
}
suite format check formatted
suite headers check headers_alone
suite exports check one_export
suite cgo check one_cgo
suite no-test-forgotten check test/tools/gosuites.sh --check
# Unit suites that try very many inputs: not while somebody waits.
long=' defrag doc gpuset hold machines place_best place_single place_table place_templates probe_errors recover thrift window '
for unit in build/san/test/unit/test_*; do
	name=${unit##*/test_}
	if [ -x "$unit" ] && ! { $only_check && [[ $long == *" $name "* ]]; }; then
		suite "unit-$name" unity "$unit"
	fi
done
if $only_check; then
	if [ -x bin/scheduler ]; then
		suite vet check go vet ./...
	else
		echo "vet: not before make build, for it would build Kubernetes"
	fi
	finish
fi
for target in build/san/test/fuzz/fuzz_*; do
	[ -x "$target" ] && suite "corpus-${target##*/fuzz_}" plain "$target" "test/fuzz/corpus/${target##*/fuzz_}"
done
suite sim plain test/sim/run.sh build/san/frond-sim
suite sim-manifests plain test/sim/manifests.sh build/san/frond-sim 200
suite agent plain test/agent/run.py build/san/frond-agent bin/frond-agent
suite oracle-self plain build/san/test/property/oracle --self-test
suite oracle plain build/san/test/property/oracle --sim build/san/frond-sim --count "${ORACLE_COUNT:-1200}"
suite oracle-recover plain build/san/test/property/oracle --sim build/san/frond-sim --verb recover --count 300
suite oracle-preempt plain build/san/test/property/oracle --sim build/san/frond-sim --verb preempt --count 300
suite oracle-reserve plain build/san/test/property/oracle --sim build/san/frond-sim --verb reserve --count 300
suite oracle-defrag plain build/san/test/property/oracle --sim build/san/frond-sim --verb defrag --count 300
suite slowest plain build/rel/test/slowest/slowest --calls 300 --nodes-most 2000 --most-ms 100
suite compilers plain test/tools/compilers.sh 60
suite fuzz plain test/tools/fuzz.sh "${FUZZ_SECONDS:-20}"

echo "Go: building the programs (cold: about 10 minutes)"
if together make --no-print-directory build bin/scheduler-faults; then
	suite vet check go vet ./...
	go_suites
else
	echo "the Go build failed: see above"
	failed=$((failed + 1))
fi
finish
