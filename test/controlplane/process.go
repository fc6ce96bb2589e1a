package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// logTail is how much of a process's log, in bytes, goes into an error.
const logTail = 2000

// stopGrace is how long a process may take to obey SIGTERM, on a machine that has more
// to do.
const stopGrace = 2 * time.Minute

// Process is a program that runs beside the cluster and ends with it.
type Process struct {
	// Name says what it is, in errors.
	Name string
	// LogPath is the file that holds its stdout and stderr.
	LogPath string

	cmd  *exec.Cmd
	done chan struct{}
	once sync.Once
	// stopping is closed when the end of the process is wanted.
	stopping chan struct{}
	waitErr  error
	// before is how long the log was when it began.
	before int64
}

// startProcess runs path with args, its output appended to logPath. env is added to this
// process's own environment.
func startProcess(name, path, logPath string, env []string, args ...string) (*Process, error) {
	if err := os.MkdirAll(filepath.Dir(logPath), 0o755); err != nil {
		return nil, fmt.Errorf("start %s: make log folder: %w", name, err)
	}
	output, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: open log: %w", name, err)
	}
	// The child has its own descriptor as soon as it runs.
	defer func() { _ = output.Close() }()

	log, err := output.Stat()
	if err != nil {
		return nil, fmt.Errorf("start %s: read size of log: %w", name, err)
	}

	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = output, output
	// A program's own defaults must not lead it to a cluster of the user's.
	cmd.Env = append(environWithout("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"), env...)
	if err := startTied(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{Name: name, LogPath: logPath, cmd: cmd, done: make(chan struct{}), stopping: make(chan struct{}), before: log.Size()}
	go func() {
		p.waitErr = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// endedByItself is false while the process runs and after it was stopped.
func (p *Process) endedByItself() bool {
	select {
	case <-p.done:
	default:
		return false
	}
	select {
	case <-p.stopping:
		return false
	default:
		return true
	}
}

// Err is nil while the process runs and after it was stopped; otherwise it
// says how it ended, with the end of its log.
func (p *Process) Err() error {
	if !p.endedByItself() {
		return nil
	}
	state := "exit status 0"
	if p.waitErr != nil {
		state = p.waitErr.Error()
	}
	return fmt.Errorf("%s ended (%s), log %s:\n%s", p.Name, state, p.LogPath, tail(p.LogPath))
}

// EndedWith reports whether it has ended by itself and its output has this text, anywhere: other
// goroutines write on while a process ends.
func (p *Process) EndedWith(text string) bool {
	if !p.endedByItself() {
		return false
	}
	log, err := os.ReadFile(p.LogPath)
	return err == nil && int64(len(log)) >= p.before && bytes.Contains(log[p.before:], []byte(text))
}

// Stop asks the process to end, kills it when it does not within stopGrace, and
// returns when it is gone.
func (p *Process) Stop() error { return p.StopWithin(stopGrace) }

// kill ends the process without asking.
func (p *Process) kill() error { return p.StopWithin(0) }

// StopWithin is Stop with another time: 0 kills the process at once.
func (p *Process) StopWithin(grace time.Duration) error {
	if p == nil {
		return nil
	}
	p.once.Do(func() { close(p.stopping) })
	if grace > 0 {
		if err := p.signal(syscall.SIGTERM); err != nil {
			return err
		}
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
			return nil
		case <-timer.C:
		}
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

func (p *Process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.Name, err)
	}
	return nil
}

// tail returns the last lines of a log file, or why there are none.
func tail(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(content) > logTail {
		content = content[len(content)-logTail:]
		if newline := bytes.IndexByte(content, '\n'); newline >= 0 {
			content = content[newline+1:]
		}
	}
	return string(bytes.TrimSpace(content))
}

func environWithout(names ...string) []string {
	var kept []string
	for _, entry := range os.Environ() {
		if !hasAnyName(entry, names) {
			kept = append(kept, entry)
		}
	}
	return kept
}

func hasAnyName(entry string, names []string) bool {
	for _, name := range names {
		if len(entry) > len(name) && entry[len(name)] == '=' && entry[:len(name)] == name {
			return true
		}
	}
	return false
}
