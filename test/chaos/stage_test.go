package chaos

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/scenario"
)

// stage is one fault's namespace and pool.
type stage struct {
	*scenario.Namespace
	t    *testing.T
	w    *world
	pool scenario.Pool
	// claims are those made so far, image what the template says, after so many edits.
	claims []string
	image  string
	edits  int
	// unrecorded are how many of the claims were there before the recording began.
	unrecorded int
}

func (w *world) stage(t *testing.T, name string) *stage {
	t.Helper()
	ns, err := scenario.CreateNamespace(t.Context(), w.Cluster.Config(), w.Version, "chaos-"+name, scenario.Enforce())
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{Namespace: ns, t: t, w: w, image: "sandbox:v0", pool: scenario.Pool{
		Name: "python", Template: "python", Image: "sandbox:v0", Replicas: 3, Strategy: scenario.Recreate,
	}}
	s.must(ns.WaitGuarded(t.Context(), within))
	s.must(s.CreatePool(t.Context(), s.pool))
	_, err = s.WaitPool(t.Context(), s.pool, s.image, within)
	s.must(err)
	return s
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// eventually waits for a condition that tells how far things are.
func (s *stage) eventually(what string, condition func(context.Context) (string, bool)) {
	s.t.Helper()
	var state string
	err := scenario.Poll(s.t.Context(), within, func(ctx context.Context) (done bool, _ error) {
		state, done = condition(ctx)
		return done, nil
	})
	if err != nil {
		s.t.Fatalf("%s: %v; there is: %s", what, err, state)
	}
}

// load edits the template, and makes claims on the pool right after, as often as
// rounds says. What fails is tried again: the API server may be what is broken.
func (s *stage) load(ctx context.Context, rounds int) error {
	for range rounds {
		s.edits++
		s.image = fmt.Sprintf("sandbox:v%d", s.edits)
		if err := persist(ctx, func() error { _, err := s.SetImage(ctx, s.pool.Template, s.image); return err }); err != nil {
			return err
		}
		for range 2 {
			name := fmt.Sprintf("c%d", len(s.claims)+1)
			if err := persist(ctx, func() error { return s.CreateClaims(ctx, s.pool, name) }); err != nil {
				return err
			}
			s.claims = append(s.claims, name)
		}
	}
	return nil
}

// persist repeats what fails; what is there already came of a try whose answer was lost.
func persist(ctx context.Context, try func() error) error {
	var last error
	err := scenario.Poll(ctx, within, func(context.Context) (bool, error) {
		last = try()
		return last == nil || apierrors.IsAlreadyExists(last), nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// calm waits until every claim is ready and the pool is full of what its template says.
// Requests may fail for a moment after a fault.
func (s *stage) calm() error {
	ctx := s.t.Context()
	if err := s.patiently(func() error { return s.WaitClaims(ctx, within, s.claims...) }); err != nil {
		return err
	}
	return s.patiently(func() error { _, err := s.WaitPool(ctx, s.pool, s.image, within); return err })
}

// patiently repeats what fails otherwise than by coming too late.
func (s *stage) patiently(try func() error) error {
	var last error
	err := scenario.Poll(s.t.Context(), within, func(context.Context) (bool, error) {
		last = try()
		return last == nil || scenario.TooLate(last), nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return last
}

// convictions are what the auditor finds in the namespace, and what it says in all.
func (s *stage) convictions() ([]checker.Bind, checker.Summary, error) {
	if err := s.patiently(func() error { return s.w.record.CatchUp(s.t.Context()) }); err != nil {
		return nil, checker.Summary{}, err
	}
	report := s.w.record.Report()
	if len(report.EventGaps) > 0 {
		return nil, checker.Summary{}, fmt.Errorf("events were lost, so nothing is proven: %v", report.EventGaps)
	}
	var bad []checker.Bind
	for _, b := range report.Findings {
		// Admitted under the revision that was in force then.
		if b.Namespace == s.Name && b.Class != checker.Raced {
			bad = append(bad, b)
		}
	}
	return bad, report.Namespace(s.Name), nil
}
