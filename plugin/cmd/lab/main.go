// SPDX-License-Identifier: Apache-2.0

// Command lab runs a whole control plane with simulated GPU nodes on this machine. Exit codes: 0 done, 1 failed,
// 2 wrong usage or bad input, 3 not up (status), 130 interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/frond-scheduler/frond/plugin/lab"
)

const usage = `lab runs a real Kubernetes control plane with simulated GPU nodes on this machine, on 127.0.0.1 only.

  lab up [--cluster LINE | --fabric FILE]   start it; returns when all is Ready
  lab demo                                  start it if need be, place some jobs and show where they went
  lab status                                what runs; exit 3 when it is not up
  lab down                                  stop it; nothing is left running

Each takes --help. State is under .lab/ (--dir for another; two labs can run side by side).
`

func main() {
	if err := lab.Seal(); err != nil {
		os.Exit(fail(err))
	}
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	if len(args) == 0 {
		fmt.Print(usage)
		return 0
	}
	verb, rest := args[0], args[1:]
	switch verb {
	case "up":
		return up(rest)
	case "down":
		return down(rest)
	case "status":
		return status(rest)
	case "demo":
		return demo(rest)
	case "supervise": // what up starts; not for people
		if err := lab.Supervise(os.Stdin); err != nil {
			return fail(err)
		}
		return 0
	case "help", "-h", "-help", "--help":
		fmt.Print(usage)
		return 0
	default:
		return misuse("unknown command %q", verb)
	}
}

// flags is one verb's flags. All verbs have --dir.
type flags struct {
	*flag.FlagSet
	dir  string
	help func()
}

func newFlags(verb, synopsis, about string) *flags {
	f := &flags{FlagSet: flag.NewFlagSet(verb, flag.ContinueOnError)}
	f.SetOutput(io.Discard) // errors are printed once, by us
	f.StringVar(&f.dir, "dir", lab.DefaultDir, "the lab's `folder`")
	f.Usage = func() {} // only when asked for, not with every error
	f.help = func() {
		fmt.Printf("usage: lab %s %s\n\n%s\n\n", verb, synopsis, about)
		f.VisitAll(func(option *flag.Flag) {
			value, text := flag.UnquoteUsage(option)
			if option.DefValue != "" && option.DefValue != "0" {
				text += " (default " + option.DefValue + ")"
			}
			fmt.Printf("  %-24s %s\n", "--"+option.Name+" "+strings.ToUpper(value), text)
		})
	}
	return f
}

// parse opens the lab that the flags name; done says that there is nothing more to do, and code with which exit code.
func (f *flags) parse(args []string) (l lab.Lab, code int, done bool) {
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		f.help()
		return l, 0, true
	}
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if err != nil {
		return l, misuse("%s: %v", f.Name(), err), true
	}
	if l, err = lab.Open(f.dir, ""); err != nil {
		return l, misuse("%s: %v", f.Name(), err), true
	}
	return l, 0, false
}

// upFlags are shared by up and demo, which starts what is not running.
func (f *flags) upFlags() *lab.UpOptions {
	opts := &lab.UpOptions{Out: os.Stdout, Terminal: term.IsTerminal(int(os.Stdout.Fd()))}
	opts.Expand = expand
	f.StringVar(&opts.Cluster, "cluster", lab.DefaultCluster, "cluster in one `line`, each number per parent")
	f.StringVar(&opts.Fabric, "fabric", "", "fabric `file`, instead of --cluster")
	f.StringVar(&opts.Machines, "machines", "", "what the nodes stand for, in fabric order, such as dgx-h100=16,dgx-a100=8: a `list`")
	f.IntVar(&opts.Agents, "agents", 1, "how many of these run a real frond-agent: a `number`")
	f.IntVar(&opts.ParentPID, "with-parent", 0, "end the lab when the process with this `pid` has ended, however it ends")
	f.DurationVar(&opts.Timeout, "timeout", 3*time.Minute, "how long the start may take")
	return opts
}

// settleFabric drops the default cluster when a fabric file was given instead.
func (f *flags) settleFabric(opts *lab.UpOptions) {
	given := false
	f.Visit(func(option *flag.Flag) { given = given || option.Name == "cluster" })
	if opts.Fabric != "" && !given {
		opts.Cluster = ""
	}
}

func up(args []string) int {
	f := newFlags("up", "[--cluster LINE [--machines LIST] | --fabric FILE] [--dir DIR]",
		"Starts a control plane and its nodes, afresh, and returns when all is Ready. A supervisor stays behind.")
	opts := f.upFlags()
	l, code, done := f.parse(args)
	if done {
		return code
	}
	f.settleFabric(opts)
	return exit(l.Up(*opts))
}

func demo(args []string) int {
	f := newFlags("demo", "[--cluster LINE [--machines LIST] | --fabric FILE] [--dir DIR]",
		"Starts the lab if it is not up, submits the jobs of manifests/examples, and shows where each went and why.\nThe cluster stays up. The default cluster is of --machines "+lab.DemoMachines+".")
	opts := f.upFlags()
	patience := f.Duration("patience", time.Minute, "how long each workload may take to be placed")
	l, code, done := f.parse(args)
	if done {
		return code
	}
	f.settleFabric(opts)
	if opts.Cluster == lab.DefaultCluster && opts.Machines == "" {
		opts.Machines = lab.DemoMachines
	}
	ctx, stop := interruptible()
	defer stop()
	return exit(l.Demo(ctx, lab.DemoOptions{Up: *opts, Draw: draw, Patience: *patience}))
}

func down(args []string) int {
	f := newFlags("down", "[--dir DIR]", "Stops the lab; its logs stay. Nothing to stop is fine.")
	l, code, done := f.parse(args)
	if done {
		return code
	}
	ctx, stop := interruptible()
	defer stop()
	return exit(l.Down(ctx, os.Stdout))
}

func status(args []string) int {
	f := newFlags("status", "[--dir DIR]", "Shows what runs. Exit 0 when the lab is up, 3 when it is not.")
	l, code, done := f.parse(args)
	if done {
		return code
	}
	ctx, stop := interruptible()
	defer stop()
	return exit(l.Status(ctx, os.Stdout))
}

func interruptible() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// exit prints an error where it was not printed yet and gives its exit code.
func exit(err error) int {
	var bad *lab.InputError
	var start *lab.StartError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, lab.ErrNotUp):
		return 3
	case errors.Is(err, lab.ErrNotPlaced):
		return 1
	case errors.Is(err, lab.ErrInterrupted):
		fail(err)
		return 130
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "lab: interrupted")
		return 130
	case errors.As(err, &bad):
		fail(err)
		return 2
	case errors.As(err, &start):
		code := fail(err)
		start.Explain(os.Stderr)
		return code
	default:
		return fail(err)
	}
}

func fail(err error) int {
	fmt.Fprintf(os.Stderr, "lab: %v\n", err)
	return 1
}

func misuse(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "lab: %s; see lab --help\n", fmt.Sprintf(format, args...))
	return 2
}
