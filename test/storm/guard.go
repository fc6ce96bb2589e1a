package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/freshbind/freshbind/test/fixture"
)

// load is what Freshbind's metrics tell of its own work.
type load struct{ reads, binds float64 }

func (l load) plus(m load) load { return load{l.reads + m.reads, l.binds + m.binds} }

// readsPerBind is 0 when nothing was judged.
func (l load) readsPerBind() float64 {
	if l.binds == 0 {
		return 0
	}
	return l.reads / l.binds
}

// parseLoad reads metrics in Prometheus' text format.
func parseLoad(metrics string) (load, error) {
	reads, err := sum(metrics, "freshbind_live_reads_total", "")
	if err != nil {
		return load{}, err
	}
	binds, err := sum(metrics, "freshbind_bind_verdicts_total", `operation="bind"`)
	return load{reads, binds}, err
}

// sum adds up a counter over all label sets that hold the pair.
func sum(metrics, name, pair string) (float64, error) {
	total := 0.0
	for line := range strings.Lines(metrics) {
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, name+"{") || !strings.Contains(line, pair) {
			continue
		}
		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			return 0, fmt.Errorf("read metric %s: %w", strings.TrimSpace(line), err)
		}
		total += value
	}
	return total, nil
}

// guard is Freshbind, whose process can be killed. The counters of a process
// die with it, so they are read just before.
type guard struct {
	*fixture.Freshbind

	mu   sync.Mutex
	down bool
	load load
}

// Err tells how Freshbind ended, unless it was killed here.
func (g *guard) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return nil
	}
	return g.Freshbind.Err()
}

// count adds what the running process has counted.
func (g *guard) count(ctx context.Context) error {
	text, err := g.Metrics(ctx)
	if err != nil {
		return fmt.Errorf("ask freshbind what it counted: %w", err)
	}
	l, err := parseLoad(text)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.load = g.load.plus(l)
	return nil
}

func (g *guard) kill(ctx context.Context) error {
	if err := g.count(ctx); err != nil {
		return err
	}
	pid, err := pidOf(g.Program())
	if err != nil {
		return fmt.Errorf("kill freshbind: %w", err)
	}
	g.mu.Lock()
	g.down = true
	g.mu.Unlock()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill freshbind (process %d): %w", pid, err)
	}
	return g.Stop()
}

func (g *guard) restart(ctx context.Context) error {
	if err := g.Start(ctx); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = false
	return nil
}

// pidOf finds the process that runs a program which nothing else runs: it lies
// in the storm's own folder.
func pidOf(program string) (int, error) {
	program, err := filepath.EvalSymlinks(program)
	if err != nil {
		return 0, fmt.Errorf("resolve program: %w", err)
	}
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	for _, link := range links {
		// Other users' processes, and those that end meanwhile, cannot be read.
		if path, err := os.Readlink(link); err == nil && path == program {
			return strconv.Atoi(filepath.Base(filepath.Dir(link)))
		}
	}
	return 0, errors.New("no process in /proc runs " + program + ": the storm needs Linux")
}
