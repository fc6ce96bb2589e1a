package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/scenario"
)

const (
	// size is that of the pools and of each burst of claims.
	size     = 10
	poolName = "python"
	// lateWithin is the patience with a pool that exhausted it before.
	lateWithin = time.Second
)

// side is one of the two namespaces and what went wrong in it so far.
type side struct {
	name  string
	ns    *scenario.Namespace
	pool  scenario.Pool
	notes []string
	// late: the pool has not come to rest when it was last waited for.
	late bool
	// took is how long it took until all claims of the round were ready; 0 when
	// they were not.
	took time.Duration
}

// note remembers what the side's own controllers could not do in time. It is
// no reason to stop: the judge says what it means.
func (s *side) note(err error) { s.notes = append(s.notes, err.Error()) }

// play is a demo that runs.
type play struct {
	options
	*stage
	out       io.Writer
	recording *scenario.Recording
	sides     []*side
	refused   scenario.Refused
}

func (p *play) say(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format+"\n", args...) }

// both does the same in both namespaces at the same time.
func (p *play) both(f func(*side) error) error {
	errs := make([]error, len(p.sides))
	var wait sync.WaitGroup
	for i, s := range p.sides {
		wait.Go(func() { errs[i] = f(s) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// inTurn does the same in one namespace after the other, so that the work of the one is
// no part of the other's times. Who is first changes with the number of the round.
func (p *play) inTurn(number int, f func(*side) error) error {
	for i := range p.sides {
		if err := f(p.sides[(i+number)%len(p.sides)]); err != nil {
			return err
		}
	}
	return nil
}

// tolerated is nil for what a namespace's controllers failed to do in time,
// which is noted, and the error otherwise.
func (s *side) tolerated(ctx context.Context, err error) error {
	if err == nil || context.Cause(ctx) != nil || !scenario.TooLate(err) {
		return err
	}
	s.note(err)
	return nil
}

// open makes template and pool in both namespaces, and waits until they are at rest. The
// pool of coldStarts is made now, so that agent-sandbox has seen its template by then.
func (p *play) open(ctx context.Context) error {
	if err := p.guarded.CreatePool(ctx, p.quiet()); err != nil {
		return err
	}
	return p.both(func(s *side) error {
		if err := s.ns.CreatePool(ctx, s.pool); err != nil {
			return err
		}
		return p.rest(ctx, s, p.image(0))
	})
}

// round changes the template of both pools, in place, and makes a burst of claims. Both
// are at rest before it, and after it.
func (p *play) round(ctx context.Context, number int) error {
	from, to := p.image(number-1), p.image(number)
	names := scenario.Names(fmt.Sprintf("c%d-", number), size)
	p.say("round %d/%d  template %s: image %s -> %s, then %d claims at once", number, p.rounds, poolName, from, to, size)
	err := p.inTurn(number, func(s *side) error {
		if err := p.burst(ctx, s, to, names); err != nil {
			return err
		}
		return p.rest(ctx, s, to)
	})
	if err != nil {
		return err
	}
	return p.report(ctx, fmt.Sprintf("c%d-", number))
}

// rest waits until a pool has as many ready members of the image as it wants.
// One that did not get there is not waited for that long again: from v0.5.5 to
// v1.0.3 at least, the pool controller waits five minutes for the event of a
// delete that it sent after a claim had taken the member, and creates nothing
// meanwhile (extensions/controllers/warmpool_expectations.go).
func (p *play) rest(ctx context.Context, s *side, image string) error {
	within := p.timeout
	if s.late {
		within = lateWithin
	}
	_, err := s.ns.WaitPool(ctx, s.pool, image, within)
	s.late = scenario.TooLate(err)
	if err != nil {
		return s.tolerated(ctx, err)
	}
	return scenario.Pause(ctx, p.settling())
}

func (p *play) burst(ctx context.Context, s *side, image string, names []string) error {
	if _, err := s.ns.SetImage(ctx, s.pool.Template, image); err != nil {
		return err
	}
	start := time.Now()
	if err := s.ns.CreateClaims(ctx, s.pool, names...); err != nil {
		return err
	}
	err := s.ns.WaitClaims(ctx, p.timeout, names...)
	s.took = 0
	if err == nil {
		s.took = time.Since(start)
	}
	return s.tolerated(ctx, err)
}

// report prints one line for each side, and what was noted.
func (p *play) report(ctx context.Context, prefix string) error {
	judged, err := p.recording.Judge(ctx)
	if err != nil {
		return err
	}
	now, err := p.refusals(ctx)
	if err != nil {
		return err
	}
	since := now.Minus(p.refused)
	p.refused = now
	for _, s := range p.sides {
		var refused *scenario.Refused
		if s.ns == p.guarded {
			refused = &since
		}
		p.say("%s", roundLine(s.name, ofRound(judged.Binds, s.ns.Name, prefix), s.took, refused))
		for _, note := range s.notes {
			p.say("             %s", note)
		}
		s.notes = nil
	}
	return nil
}

func (p *play) refusals(ctx context.Context) (scenario.Refused, error) {
	text, err := p.guard.Metrics(ctx)
	if err != nil {
		return scenario.Refused{}, fmt.Errorf("ask freshbind what it refused: %w", err)
	}
	return scenario.ParseRefused(text)
}

// ghosts probes both pools once the last update has settled.
func (p *play) ghosts(ctx context.Context, rows map[string]*row) error {
	var mu sync.Mutex
	return p.both(func(s *side) error {
		if err := p.rest(ctx, s, p.image(p.rounds)); err != nil || s.late {
			return err
		}
		probe, err := s.ns.Ghosts(ctx, s.pool, "probe-")
		if err != nil {
			return s.tolerated(ctx, err)
		}
		mu.Lock()
		defer mu.Unlock()
		rows[s.name].ghosts = len(probe.Ghosts)
		return nil
	})
}

// judge draws the conclusion. The claims of the probe for ghosts come after the
// rows were filled; only what they do wrong counts.
func (p *play) judge(ctx context.Context) (outcome, *checker.Report, error) {
	judged, err := p.recording.Judge(ctx)
	if err != nil {
		return outcome{}, nil, err
	}
	rows := map[string]*row{}
	for _, s := range p.sides {
		rows[s.name] = &row{side: s.name, Summary: judged.Namespace(s.ns.Name), ghosts: unknown}
	}
	if err := p.ghosts(ctx, rows); err != nil {
		return outcome{}, nil, err
	}
	final, err := p.recording.Judge(ctx)
	if err != nil {
		return outcome{}, nil, err
	}
	for _, s := range p.sides {
		rows[s.name].Classes = final.Namespace(s.ns.Name).Classes
	}
	return outcome{
		unguarded: *rows["unguarded"], guarded: *rows["guarded"], claims: p.rounds * size,
		lost: len(final.EventGaps), unsettled: final.Unsettled,
	}, judged, nil
}
