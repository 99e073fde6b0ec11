// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// fake compiles a library whose source is given and returns its path.
func fake(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	file, library := filepath.Join(dir, "fake.c"), filepath.Join(dir, "libfrond.so")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("gcc", "-shared", "-fPIC", "-I../csrc/include", "-o", library, file)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("compiling a fake library: %v\n%s", err, out)
	}
	return library
}

const table = `#include "frond.h"
static const struct frond_abi abi = {.version = %s, .size = %s};
const struct frond_abi *frond_abi_get(void) { return &abi; }
`

func TestOpenSaysInOneSentenceWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte("not a library at all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.so")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	truncated := filepath.Join(dir, "truncated.so")
	if err := os.WriteFile(truncated, []byte("\x7fELF and no more"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "nowhere", "libfrond.so")

	for _, test := range []struct{ name, path, want string }{
		{"file missing", missing, missing + ": the file is missing"},
		{"a text file", text, text + ": is not a shared library"},
		{"an empty file", empty, empty + ": is not a shared library"},
		{"a folder", dir, dir + ": is not a shared library"},
		{"damaged", truncated, truncated + ": cannot be loaded: "},
		{"a name without a slash means a file", "libm.so.6", "./libm.so.6: the file is missing"},
		{"symbol missing", fake(t, "int other(void) { return 1; }"), ": has no symbol frond_abi_get"},
		{"another version", fake(t, fmt.Sprintf(table, "2", "sizeof(struct frond_abi)")), ": version 2 where 6 is needed"},
		{"wrong size", fake(t, fmt.Sprintf(table, "FROND_ABI_VERSION", "8")), ": its table has 8 bytes where "},
		{"no table", fake(t, "const void *frond_abi_get(void) { return 0; }"), ": frond_abi_get returned no table"},
		{"a NUL in the path", "a\x00b", "NUL byte"},
	} {
		t.Run(test.name, func(t *testing.T) {
			library, err := Open(test.path)
			if err == nil || library != nil {
				t.Fatal("opened")
			}
			if got := err.Error(); !strings.Contains(got, test.want) || strings.Contains(got, "\n") {
				t.Errorf("got %q, want one line with %q", got, test.want)
			}
		})
	}
}

func TestOpenTakesALibraryThatFits(t *testing.T) {
	if _, err := Open(fake(t, fmt.Sprintf(table, "FROND_ABI_VERSION", "sizeof(struct frond_abi)"))); err != nil {
		t.Fatal(err)
	}
}

// Records that cross without a copy must lie in memory as C lays them out.
func TestLayout(t *testing.T) {
	want := layout()
	seen := 0
	for _, record := range []any{Key{}, Member{}, Place{}, Held{}, GangHold{}, Named{}, Room{}, Kind{}, Left{}, Topology{}, Plan{}, Move{}, Moves{}, Victims{}, End{}, Window{}, Stats{}} {
		kind := reflect.TypeOf(record)
		seen++
		if got := kind.Size(); got != want[kind.Name()] {
			t.Errorf("%s has %d bytes in Go, %d in C", kind.Name(), got, want[kind.Name()])
		}
		for i := range kind.NumField() {
			field, name := kind.Field(i), kind.Name()+"."+kind.Field(i).Name
			seen++
			offset, known := want[name]
			if !known {
				t.Errorf("%s is not in C's list", name)
			} else if field.Offset != offset {
				t.Errorf("%s is at %d in Go, %d in C", name, field.Offset, offset)
			}
		}
	}
	if seen != len(want) {
		t.Errorf("%d entries in Go, %d in C", seen, len(want))
	}
}

func TestKeys(t *testing.T) {
	if got := PodKey("00112233-4455-6677-8899-aabbccddeeff"); got != (Key{0x0011223344556677, 0x8899aabbccddeeff}) {
		t.Errorf("a UUID is its own key, got %v", got)
	}
	for _, uid := range []string{"", "x", "00000000-0000-0000-0000-000000000000", "0011223344556677-8899-aabbccddee-ffzz",
		"zz112233-4455-6677-8899-aabbccddeeff"} {
		if PodKey(uid) == (Key{}) {
			t.Errorf("%q gave the zero key", uid)
		}
	}
	if PodKey("a") == PodKey("b") || PodKey("a") != PodKey("a") {
		t.Error("hashed keys must differ by text and by nothing else")
	}
	if GangKey("Job", "a", "b", "u") == GangKey("PodGroup", "a", "b", "u") {
		t.Error("the kind must count")
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		Placed.String(): "placed", Never.String(): "never fits", Rule(5).String(): "adjacent leaves", GangDegraded.String(): "degraded",
		Rule(99).String(): "unknown (99)",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
