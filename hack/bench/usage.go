package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/freshbind/freshbind/test/fixture"
)

const (
	// ticksPerSecond is the unit of /proc/PID/stat on every Linux.
	ticksPerSecond = 100
	kibi           = 1024
)

// cpuTime is how long a process has been computing, with a resolution of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(proc(pid, "stat"))
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return parseStat(string(text))
}

// cpuTimes are those of processes, by name.
func cpuTimes(pids map[string]int) (map[string]time.Duration, error) {
	spent := map[string]time.Duration{}
	for name, pid := range pids {
		var err error
		if spent[name], err = cpuTime(pid); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return spent, nil
}

func proc(pid int, file string) string { return filepath.Join("/proc", strconv.Itoa(pid), file) }

// parseStat adds up user and system time. Of the fields only the program's name
// can have blanks in it, and it ends with the last bracket.
func parseStat(text string) (time.Duration, error) {
	_, rest, ok := strings.Cut(text[max(0, strings.LastIndex(text, ")")):], ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0, fmt.Errorf("read CPU time: %q is no process status", text)
	}
	var sum time.Duration
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time: %w", err)
		}
		sum += time.Duration(ticks) * time.Second / ticksPerSecond
	}
	return sum, nil
}

// peakMemory is the most that a process ever had in memory, in bytes.
func peakMemory(pid int) (float64, error) {
	text, err := os.ReadFile(proc(pid, "status"))
	if err != nil {
		return 0, fmt.Errorf("read peak of memory: %w", err)
	}
	return parsePeak(string(text))
}

func parsePeak(text string) (float64, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			if err != nil {
				return 0, fmt.Errorf("read peak of memory: %w", err)
			}
			return kib * kibi, nil
		}
	}
	return 0, errors.New("read peak of memory: the process has none")
}

// metric is the value of one without labels.
func metric(text, name string) (float64, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				return 0, fmt.Errorf("read metric %s: %w", name, err)
			}
			return f, nil
		}
	}
	return 0, fmt.Errorf("read metric %s: there is none", name)
}

const liveHeap = "go_gc_heap_live_bytes"

// heapInUse is what is in use after a collection, in bytes.
func heapInUse(ctx context.Context, f *fixture.Freshbind) (float64, error) {
	// What has a finalizer or is pooled goes with the second.
	for range 2 {
		if _, err := f.Profile(ctx); err != nil {
			return 0, err
		}
	}
	text, err := f.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	return metric(text, liveHeap)
}
