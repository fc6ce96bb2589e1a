package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Screen shows lines that change in place.
type Screen struct {
	out io.Writer
	// width is how many columns there are: a longer line is cut, so that each takes one
	// row.
	width func() int
	shown int
}

// anyWidth is that of a terminal that does not tell.
const anyWidth = 80

// NewScreen returns nil where out is no terminal, or one that cannot move its cursor.
func NewScreen(out io.Writer) *Screen {
	file, ok := Raw(out).(*os.File)
	if !ok || os.Getenv("TERM") == "" || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return ScreenOf(file, func() int {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
		return anyWidth
	})
}

// ScreenOf returns a screen that is known to be one.
func ScreenOf(out io.Writer, width func() int) *Screen { return &Screen{out: out, width: width} }

// Show puts lines in the place of those before; none clears the screen of them.
func (s *Screen) Show(lines ...string) error {
	var b strings.Builder
	if s.shown > 0 {
		// Up, and away with everything from there on.
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", s.shown)
	}
	width := s.width()
	for _, line := range lines {
		line = OneLine(line)
		if cut := []rune(line); len(cut) > width {
			line = string(cut[:width])
		}
		b.WriteString(line + "\n")
	}
	s.shown = len(lines)
	if _, err := io.WriteString(s.out, b.String()); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// barWidth is how many columns a bar takes.
const barWidth = 20

// Progress is a rollout at a glance: what is up to date, and what keeps the rest.
func (p *Pool) Progress(trouble *Trouble) []string {
	full := 0
	if p.Replicas > 0 {
		full = min(barWidth, max(0, p.Updated*barWidth/p.Replicas))
	}
	lines := []string{fmt.Sprintf("%s  %s%s  %d of %d up to date, %d claimable  %s", p.Name,
		strings.Repeat("█", full), strings.Repeat("░", barWidth-full), p.Updated, p.Replicas, p.Claimable, p.State)}
	if trouble != nil {
		lines = append(lines, fmt.Sprintf("  newest member %s is not ready: %s", trouble.Member, trouble.Why))
	}
	return lines
}
