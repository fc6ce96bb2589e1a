package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// How often progress is shown: in place on a terminal, else as further lines.
const (
	inPlaceEvery = time.Second
	lineEvery    = 30 * time.Second
)

const (
	// clearLine begins a terminal's line anew.
	clearLine = "\r\033[K"
	// usualColumns is how wide a terminal is that does not say so.
	usualColumns = 80
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
		_, _ = fmt.Fprint(p.log, clearLine)
	}
}

func (p *progress) show() {
	running.Lock()
	defer running.Unlock()
	if !p.inPlace {
		say(p.log, "  %s", p.line(time.Since(p.start)))
		return
	}
	_, _ = fmt.Fprint(p.log, clearLine+fitting(running.builds, time.Now(), width(p.log)))
}

// width is how wide the terminal is that log is.
func width(log io.Writer) int {
	if file, ok := log.(*os.File); ok {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return usualColumns
}

// fitting is one line about builds for a terminal that is so wide. What is wider
// would be broken into lines, and these stay when the next is written over the last.
func fitting(builds []*progress, now time.Time, columns int) string {
	var long, short []string
	for _, b := range builds {
		elapsed := now.Sub(b.start)
		long, short = append(long, b.line(elapsed)), append(short, b.shortLine(elapsed))
	}
	line := "  " + strings.Join(long, "; ")
	if len(line) >= columns {
		line = "  " + strings.Join(short, "; ")
	}
	return line[:min(len(line), columns-1)]
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
	left := p.left(elapsed).Seconds()
	switch {
	case p.last > elapsed:
		parts = append(parts, fmt.Sprintf("about %.0f s to go, as last time", left))
	case p.last > 0:
		parts = append(parts, fmt.Sprintf("longer than the %.0f s of last time", p.last.Seconds()))
	case left > 0:
		parts = append(parts, fmt.Sprintf("at most about %.0f s to go", left))
	}
	return strings.Join(parts, ", ")
}

// shortLine is most of it, in fewer words.
func (p *progress) shortLine(elapsed time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := fmt.Sprintf("%s %.0f s", path.Base(p.title), elapsed.Seconds())
	if p.needed > 0 {
		line += fmt.Sprintf(", %d/%d", p.compiled, p.needed)
	}
	if left := p.left(elapsed); left > 0 {
		line += fmt.Sprintf(", %.0f s to go", left.Seconds())
	}
	return line
}

// left is how long it takes still, as far as that is known: as last time, or as the
// packages before.
func (p *progress) left(elapsed time.Duration) time.Duration {
	switch {
	case p.last > 0:
		return max(0, p.last-elapsed)
	case p.compiled > 0 && p.needed > p.compiled:
		return elapsed / time.Duration(p.compiled) * time.Duration(p.needed-p.compiled)
	}
	return 0
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
