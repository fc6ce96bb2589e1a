package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// How often progress is shown: in place on a terminal, else as further lines.
const (
	inPlaceEvery = time.Second
	lineEvery    = 30 * time.Second
)

// running are the builds of this process, which share the line on a terminal.
var running struct {
	sync.Mutex
	builds []*progress
}

// progress shows what a build does: packages compiled, of how many, and how long
// it takes still.
type progress struct {
	log     io.Writer
	title   string
	inPlace bool
	start   time.Time
	// last is how long it took last time; 0 when nobody knows.
	last time.Duration
	done func()

	mu sync.Mutex
	// needed is how many packages the program consists of; 0 until that is known.
	needed, compiled, modules int
}

// newProgress shows the progress of t's build until it is stopped.
func newProgress(ctx context.Context, log io.Writer, t target, last time.Duration) *progress {
	ctx, cancel := context.WithCancel(ctx)
	p := &progress{log: log, title: t.title, inPlace: isTerminal(log), start: time.Now(), last: last}
	every := lineEvery
	if p.inPlace {
		every = inPlaceEvery
	}
	running.Lock()
	running.builds = append(running.builds, p)
	running.Unlock()
	var working sync.WaitGroup
	p.done = func() { cancel(); working.Wait() }
	working.Go(func() { p.count(ctx, t) })
	working.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				p.show()
			}
		}
	})
	return p
}

func isTerminal(log io.Writer) bool {
	file, ok := log.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// count finds out how many packages there are. Without it the line says less.
func (p *progress) count(ctx context.Context, t target) {
	list, err := goCommand(ctx, t.moduleDir, "list", "-mod=readonly", "-deps", "-f", "{{.ImportPath}}", t.pkg)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.needed = strings.Count(list, "\n") + 1
}

// stop ends the showing, and clears what was shown in place.
func (p *progress) stop() {
	p.done()
	running.Lock()
	defer running.Unlock()
	running.builds = slices.DeleteFunc(running.builds, func(b *progress) bool { return b == p })
	if p.inPlace {
		_, _ = fmt.Fprint(p.log, "\r\033[K")
	}
}

func (p *progress) show() {
	running.Lock()
	defer running.Unlock()
	if !p.inPlace {
		say(p.log, "  %s", p.line(time.Since(p.start)))
		return
	}
	var lines []string
	for _, b := range running.builds {
		lines = append(lines, b.line(time.Since(b.start)))
	}
	_, _ = fmt.Fprint(p.log, "\r  "+strings.Join(lines, "; ")+"\033[K")
}

// line is what is known after so long. Packages that were compiled before, for
// another program, are not compiled again: so it is at most so many.
func (p *progress) line(elapsed time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	parts := []string{fmt.Sprintf("%s: %.0f s", p.title, elapsed.Seconds())}
	if p.modules > 0 && p.compiled == 0 {
		parts = append(parts, fmt.Sprintf("%d modules downloaded", p.modules))
	}
	switch {
	case p.needed > 0:
		parts = append(parts, fmt.Sprintf("%d of at most %d packages compiled", p.compiled, p.needed))
	case p.compiled > 0:
		parts = append(parts, fmt.Sprintf("%d packages compiled", p.compiled))
	}
	switch {
	case p.last > elapsed:
		parts = append(parts, fmt.Sprintf("about %.0f s to go, as last time", (p.last-elapsed).Seconds()))
	case p.last > 0:
		parts = append(parts, fmt.Sprintf("longer than the %.0f s of last time", p.last.Seconds()))
	case p.compiled > 0 && p.needed > p.compiled:
		each := elapsed.Seconds() / float64(p.compiled)
		parts = append(parts, fmt.Sprintf("at most about %.0f s to go", each*float64(p.needed-p.compiled)))
	}
	return strings.Join(parts, ", ")
}

// reading returns what a go command may write its stderr to. What is progress is
// counted, all else goes to rest.
func (p *progress) reading(rest io.Writer) io.Writer { return &goLines{p: p, rest: rest} }

type goLines struct {
	p    *progress
	rest io.Writer
	part []byte
}

// Write takes output as it comes, which can be parts of lines.
func (g *goLines) Write(output []byte) (int, error) {
	g.part = append(g.part, output...)
	for {
		end := bytes.IndexByte(g.part, '\n')
		if end < 0 {
			return len(output), nil
		}
		if err := g.line(string(g.part[:end])); err != nil {
			return 0, err
		}
		g.part = g.part[end+1:]
	}
}

func (g *goLines) line(line string) error {
	g.p.mu.Lock()
	defer g.p.mu.Unlock()
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		g.p.modules++
	case line != "" && !strings.ContainsAny(line, " \t:#"):
		// go build -v names a package, by its import path and nothing else.
		g.p.compiled++
	default:
		_, err := fmt.Fprintln(g.rest, line)
		return err
	}
	return nil
}
