package chaos

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/warmpool"
)

// stage is one fault's namespace and pool.
type stage struct {
	warmpool.Pool
	t *testing.T
	w *world
	// claims are those made so far, image what the template says, after so many edits.
	claims []string
	image  string
	edits  int
	// unrecorded are how many of the claims were there before the recording began.
	unrecorded int
}

func (w *world) stage(t *testing.T, name string) *stage {
	t.Helper()
	s := &stage{t: t, w: w, image: firstImage}
	s.Pool = s.newPool(warmpool.PoolOptions{Namespace: "chaos-" + name, Strategy: scenario.Recreate, Size: 3})
	return s
}

// newPool is one that is full, in a namespace of its own.
func (s *stage) newPool(o warmpool.PoolOptions) warmpool.Pool {
	ctx := s.t.Context()
	o.Labels, o.Spec, o.User = scenario.Enforce(), runs(firstImage), s.w.Cluster.Config()
	_, err := scenario.CreateNamespace(ctx, o.User, s.w.Version, o.Namespace, o.Labels)
	s.must(err)
	p, err := s.w.platform.NewPool(ctx, o)
	s.must(err)
	_, err = p.Rest(ctx, firstImage, within)
	s.must(err)
	return p
}

// firstImage is what members run at first.
const firstImage = "sandbox:v0"

func runs(image string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}}
}

// edit has the members of a pool run an image from now on.
func edit(ctx context.Context, p warmpool.Pool, image string) error {
	templates, name := p.BuiltFrom()
	stored, err := templates.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		_, err = templates.Update(ctx, p.Asking(stored, runs(image)), metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("edit what pool %s is built from: %w", p.In(), err)
	}
	return nil
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
		if err := persist(ctx, func() error { return edit(ctx, s.Pool, s.image) }); err != nil {
			return err
		}
		for range 2 {
			name := fmt.Sprintf("c%d", len(s.claims)+1)
			if err := persist(ctx, func() error { return s.Claims(ctx, name) }); err != nil {
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
	if err := s.retry(func() error { return s.Served(ctx, within, s.claims...) }); err != nil {
		return err
	}
	return s.retry(func() error { _, err := s.Rest(ctx, s.image, within); return err })
}

// retry repeats what fails otherwise than by coming too late.
func (s *stage) retry(try func() error) error {
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
	if err := s.retry(func() error { return s.w.record.CatchUp(s.t.Context()) }); err != nil {
		return nil, checker.Summary{}, err
	}
	report := s.w.record.Report()
	if len(report.EventGaps) > 0 {
		return nil, checker.Summary{}, fmt.Errorf("events were lost, so nothing is proven: %v", report.EventGaps)
	}
	var bad []checker.Bind
	for _, b := range report.Findings {
		// Admitted under the revision that was in force then.
		if b.Namespace == s.In() && b.Class != checker.Raced {
			bad = append(bad, b)
		}
	}
	return bad, report.Namespace(s.In()), nil
}
