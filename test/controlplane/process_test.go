package controlplane

import (
	"path/filepath"
	"strings"
	"testing"
)

func startShell(t *testing.T, script string) *Process {
	t.Helper()
	p, err := startProcess("shell", "/bin/sh", filepath.Join(t.TempDir(), "logs", "shell.log"), nil, "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.kill() })
	return p
}

func TestServersCollectGarbageLessOften(t *testing.T) {
	for name, tc := range map[string]struct{ set, want string }{
		"by itself":          {set: "", want: "400"},
		"as somebody set it": {set: "150", want: "150"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", tc.set)
			t.Setenv("KUBECONFIG", "somebody's")
			p, err := startProcess("shell", "/bin/sh", filepath.Join(t.TempDir(), "log"), serverEnv(), "-c", "echo $GOGC$KUBECONFIG")
			if err != nil {
				t.Fatal(err)
			}
			<-p.Done()
			if got := tail(p.LogPath); got != tc.want {
				t.Errorf("the process has GOGC and KUBECONFIG %q, want %q", got, tc.want)
			}
		})
	}
}

func TestProcessThatFails(t *testing.T) {
	p := startShell(t, "echo the reason; exit 3")
	<-p.Done()
	err := p.Err()
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("got error %v, want the exit status and the end of the log", err)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("stopping a process that is gone: %v", err)
	}
}

func TestProcessStops(t *testing.T) {
	p := startShell(t, "trap 'exit 0' TERM; echo up; while :; do sleep 1 & wait $!; done")
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "process to be up", func() (bool, error) { return tail(p.LogPath) == "up", p.Err() })
	for range 2 {
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	<-p.Done()
	if err := p.Err(); err != nil {
		t.Errorf("a stopped process has an error: %v", err)
	}
}

func TestProcessIsKilled(t *testing.T) {
	p := startShell(t, "trap '' TERM; echo up; while :; do sleep 1; done")
	eventually(t, "process to be up", func() (bool, error) { return tail(p.LogPath) == "up", p.Err() })
	if err := p.StopWithin(1); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
}

func TestProcessWithoutProgram(t *testing.T) {
	if _, err := startProcess("nothing", "/does/not/exist", filepath.Join(t.TempDir(), "log"), nil); err == nil {
		t.Error("a program that does not exist was started")
	}
}

func TestTail(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if got := tail(missing); !strings.Contains(got, "no such file") {
		t.Errorf("got %q, want why there is no log", got)
	}
	p := startShell(t, "seq 1 1000; echo last")
	<-p.Done()
	got := tail(p.LogPath)
	if !strings.HasSuffix(got, "\nlast") || len(got) > logTail || strings.HasPrefix(got, "1\n") {
		t.Errorf("got %d bytes ending in %q, want whole lines from the end", len(got), got[max(0, len(got)-10):])
	}
}
