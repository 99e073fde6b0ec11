#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs every case of test/sim/cases, and the examples of docs/frond-sim.md, against a frond-sim: test/sim/run.sh BINARY
#
# A case is a folder. `args` has one argument a line; the program runs inside the folder, with `stdin` as its stdin when
# there is one. What it must do is one of
#   want.json, want.txt   exit 0, exactly this on stdout, nothing on stderr
#   want.match            exit 0, every line is an extended regular expression that some line of stdout matches
#   want.err              exit 2, exactly this on stderr, nothing on stdout
#
# In the page a block ```yaml NAME is a file, and in a block ```console every line "$ frond-sim …" is run, followed by exactly
# what it prints, stdout and stderr.
set -uo pipefail

[ $# -eq 1 ] || { echo "usage: $0 BINARY" >&2; exit 2; }
binary=$(realpath "$1") || exit 2
cases=$(dirname "$(realpath "$0")")/cases
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# Says what is wrong with the case in the current folder; silent when all is well.
judge() {
	local -a args
	local input=/dev/null exit=0 want
	mapfile -t args <args
	[ -e stdin ] && input=stdin
	timeout 60 "$binary" "${args[@]}" <"$input" >"$scratch/out" 2>"$scratch/err" || exit=$?
	want=$(ls want.* 2>/dev/null)
	case $want in
	want.json | want.txt)
		[ $exit -eq 0 ] || echo "exit $exit, want 0"
		diff "$want" "$scratch/out"
		cat "$scratch/err" ;;
	want.match)
		[ $exit -eq 0 ] || echo "exit $exit, want 0"
		cat "$scratch/err"
		while IFS= read -r line; do
			grep -Eq -- "$line" "$scratch/out" || { echo "no line matches: $line"; cat "$scratch/out"; }
		done <want.match ;;
	want.err)
		[ $exit -eq 2 ] || echo "exit $exit, want 2"
		diff want.err "$scratch/err"
		cat "$scratch/out" ;;
	*) echo "needs exactly one want file, has: $want" ;;
	esac
}

for folder in "$cases"/*/; do
	name=$(basename "$folder")
	wrong=$(cd "$folder" && judge 2>&1)
	if [ -z "$wrong" ]; then
		echo "ok $name"
		passed=$((passed + 1))
	else
		echo "not ok $name"
		echo "$wrong" | sed 's/^/    /'
		failed=$((failed + 1))
	fi
done
# Says what is wrong with the examples of the page.
judge_page() {
	local page=$1 line
	awk '/^```yaml ./ { name = $2; next } /^```/ { name = "" } name != "" { print > name }' "$page" || return
	awk '/^```console$/ { on = 1; next } /^```/ { on = 0 } on' "$page" >want
	while IFS= read -r line; do
		[[ $line = '$ '* ]] || continue
		printf '%s\n' "$line"
		(frond-sim() { timeout 60 "$binary" "$@"; }; eval "${line#\$ }") 2>&1
	done <want >got
	grep -q '^\$ ' want || echo "there is no example"
	diff want got
}

page=$(realpath "$(dirname "$0")/../../docs/frond-sim.md")
mkdir "$scratch/page"
wrong=$(cd "$scratch/page" && judge_page "$page" 2>&1)
if [ -z "$wrong" ]; then
	echo "ok examples of docs/frond-sim.md"
	passed=$((passed + 1))
else
	echo "not ok examples of docs/frond-sim.md"
	echo "$wrong" | sed 's/^/    /'
	failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
