package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/scenario"
)

// cleanupError says what could not be removed.
type cleanupError struct{ error }

func (e *cleanupError) Error() string { return "clean up: " + e.error.Error() }

func (e *cleanupError) Unwrap() error { return e.error }

// run plays the demo and tells whether it showed what it should.
func run(ctx context.Context, o options, out io.Writer) (shown bool, err error) {
	start := time.Now()
	s, err := setStage(ctx, o, out)
	defer func() {
		if left := s.close(ctx); left != nil {
			err = errors.Join(err, &cleanupError{left})
		}
	}()
	if err != nil {
		return false, err
	}
	ctx, cancel := scenario.Supervise(ctx, s.failed)
	defer cancel()
	recording, err := scenario.Record(ctx, s.admin)
	if err != nil {
		return false, err
	}
	pool := scenario.Pool{
		Name: poolName, Template: poolName, Image: o.image(0), Replicas: size, Strategy: scenario.Recreate,
	}
	p := &play{options: o, stage: s, out: out, recording: recording, sides: []*side{
		{name: "unguarded", ns: s.unguarded, pool: pool}, {name: "guarded", ns: s.guarded, pool: pool},
	}}
	if err := p.act(ctx); err != nil {
		return false, err
	}
	second, err := beginRolling(ctx, s.admin, s.rolling, o.image(0), o.image(1))
	if err != nil {
		return false, err
	}
	result, judged, err := p.judge(ctx)
	if err != nil {
		return false, err
	}
	cold, err := p.coldStarts(ctx)
	if err != nil {
		return false, err
	}
	if err := p.conclude(result, judged, cold); err != nil {
		return false, err
	}
	undone, err := p.secondAct(ctx, second)
	if err != nil {
		return false, err
	}
	failures := slices.Concat(result.failures(), undone)
	p.end(result, failures, start)
	if o.keep {
		<-ctx.Done()
	}
	return len(failures) == 0, nil
}

func (p *play) act(ctx context.Context) error {
	if err := p.open(ctx); err != nil {
		return err
	}
	for number := range p.rounds {
		if err := p.round(ctx, number+1); err != nil {
			return err
		}
	}
	return nil
}

// secondAct plays and shows it, and returns what it did not show.
func (p *play) secondAct(ctx context.Context, r *rolling) ([]string, error) {
	p.say("%s", r.opening())
	if err := r.play(ctx, p.timeout); err != nil {
		return nil, err
	}
	judged, err := p.recording.Judge(ctx)
	if err != nil {
		return nil, err
	}
	summary := judged.Namespace(r.ns.Name)
	for _, line := range r.lines(summary) {
		p.say("%s", line)
	}
	failures := r.failures(summary)
	if len(judged.EventGaps) > 0 {
		failures = append(failures, "second act: the recording lost events: what it shows proves nothing")
	}
	return failures, nil
}

// conclude prints what the first act has shown; cold is what coldStarts returned.
func (p *play) conclude(result outcome, judged *checker.Report, cold time.Duration) error {
	p.say("judged from the watch history (what was stored when each claim was created, what its sandbox runs), not from labels")
	if err := writeTable(p.out, result.unguarded, result.guarded); err != nil {
		return err
	}
	p.say("%s", p.priceLine(result.unguarded, result.guarded))
	if cold > 0 {
		p.say("%s", coldLine(result.guarded, cold))
	}
	if binds := stale(judged.Findings); len(binds) > 0 {
		p.say("first stale bind in full")
		for _, line := range bindInFull(binds[0]) {
			p.say("%s", line)
		}
	}
	for _, s := range p.sides {
		for _, note := range s.notes {
			p.say("%s: %s", s.name, note)
		}
	}
	return nil
}

// end prints what was not shown, where to look further, and the last line.
func (p *play) end(result outcome, failures []string, start time.Time) {
	for _, line := range failures {
		p.say("not shown: %s", line)
	}
	if p.keepDir = len(failures) > 0; p.keepDir {
		p.say("logs are kept in %s", p.dir)
	}
	p.say("%s", p.lookFurther(start))
	p.say("%s", result.lastLine())
}

func (p *play) lookFurther(start time.Time) string {
	took := fmt.Sprintf("took %.0f s", time.Since(start).Seconds())
	if p.keep {
		return fmt.Sprintf("%s; all of it runs until Ctrl-C: %s get sandboxclaims,sandboxes -A; freshbind's log: %s",
			took, p.kubectl, p.guard.LogPath())
	}
	return fmt.Sprintf("%s; to look around in it: %s=1 make demo keeps it running until Ctrl-C", took, envKeep)
}
