#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which Go test runs in which suite. A package with tests needs no entry here: it runs under the race detector or, where
# upstream's scheduler is linked in, without it (that takes a build of Kubernetes of its own, which make proof makes).
#   gosuites.sh            prints the suites, one a line: NAME FLAGS… PACKAGES…
#   gosuites.sh SUITE      prints the packages of one
#   gosuites.sh --check    names test files that are in no suite, and fails if there are any
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."

# The exceptions: packages that need a lab, a build tag, time, or are a module of their own.
named='nvml-client -C=test/nvml/client ./...
failpoint -race -tags=failpoints ./plugin/failpoint
e2e -timeout=20m ./test/e2e
e2e-status -timeout=5m ./test/status
e2e-locks -timeout=5m ./test/locks
e2e-nodes -timeout=10m ./test/nodes
faults -timeout=20m ./test/faults'
elsewhere=./test/bench # make bench

# packages SUITE-LINE… — the words of suites that are packages of this module
packages() { printf '%s\n' "$@" | grep -v -- ' -C=' | tr ' ' '\n' | grep '^\./' || true; }

# rest — the unnamed packages that have tests, each after race or host
rest() {
	local known linked
	known=$(go list $(packages "$named") $elsewhere)
	linked=$(go list -test -f '{{$p := .ImportPath}}{{range .Deps}}{{$p}} {{.}}{{"\n"}}{{end}}' ./...)
	awk -v known="$known" '
		BEGIN { n = split(known, names, "\n"); for (i = 1; i <= n; i++) skip[names[i]] = 1 }
		$1 !~ /\.test$/ { next }
		{ p = $1; sub(/\.test$/, "", p) }
		p in skip { next }
		{ host[p] += $2 ~ "^k8s\\.io/kubernetes/pkg/scheduler(/|$)" }
		END { for (p in host) print (host[p] ? "host" : "race"), p }' <<<"$linked" | LC_ALL=C sort
}

suites() {
	local all
	all=$(rest)
	echo "go-race -race $(awk '$1 == "race" {print $2}' <<<"$all" | xargs)"
	echo "go-host $(awk '$1 == "host" {print $2}' <<<"$all" | xargs)"
	echo "$named"
}

check() {
	local all line word flags packages run file missing=0
	local files='{{$d := .Dir}}{{range .TestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}'
	all=$(suites)
	run=$(go list -f "$files" $elsewhere)
	while read -r _ line; do
		flags=() packages=()
		for word in $line; do
			case $word in
			-C=* | -tags=*) flags+=("$word") ;; # they decide which files there are
			-*) ;;
			*) packages+=("$word") ;;
			esac
		done
		run+=$'\n'$(go list "${flags[@]}" -f "$files" "${packages[@]}")
	done <<<"$all"
	while read -r file; do
		if [ -e "$file" ] && ! grep -qxF "$PWD/$file" <<<"$run"; then
			echo "$file: no suite of make test runs it"
			missing=$((missing + 1))
		fi
	done < <(git ls-files -co --exclude-standard '*_test.go')
	[ $missing = 0 ]
}

case ${1:-} in
'') suites ;;
--check) check ;;
*)
	found=$(suites | grep "^$1 ") || { echo "gosuites: no suite is called $1" >&2; exit 2; }
	cut -d' ' -f2- <<<"$found" | tr ' ' '\n' | grep -v '^-'
	;;
esac
