package selftest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/freshbind/freshbind/internal/settings"
)

// timeout bounds one question: the webhooks may take two seconds.
const timeout = 10 * time.Second

// Result is the outcome of one test.
type Result struct {
	At time.Time
	// Err says what is wrong; nil when everything was refused as it has to be.
	Err error
}

// Metrics tell of the last test.
type Metrics struct {
	success, timestamp prometheus.Gauge
}

// NewMetrics registers the metrics with reg. It panics if they are registered
// already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		success: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "freshbind_self_test_success",
			Help: "1 if the last self-test was refused by Freshbind, as it has to be, 0 if not.",
		}),
		timestamp: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "freshbind_self_test_timestamp_seconds",
			Help: "When the last self-test ended, in seconds since the epoch.",
		}),
	}
	reg.MustRegister(m.success, m.timestamp)
	return m
}

func (m *Metrics) observe(r Result) {
	m.success.Set(0)
	if r.Err == nil {
		m.success.Set(1)
	}
	m.timestamp.Set(float64(r.At.UnixNano()) / float64(time.Second))
}

// Tester tests again and again.
type Tester struct {
	Client client.Writer
	// Namespace is where a Sandbox is asked for.
	Namespace string
	// Sandboxes and Claims are the kinds that the API server serves.
	Sandboxes, Claims schema.GroupVersionKind
	// Member returns some idle member in a namespace that enforces, to be bound;
	// nil when there is none. It may itself be nil.
	Member func(ctx context.Context) (client.Object, error)
	// Unlike names the webhooks that differ from the one of which a refusal is seen,
	// where each is asked in namespaces of its own. It may be nil.
	Unlike func(ctx context.Context) ([]string, error)
	// Publish tells others of a result; nil for nobody.
	Publish  func(ctx context.Context, r Result) error
	Interval time.Duration
	Metrics  *Metrics
	Clock    clock.WithTicker
}

// Start tests until ctx ends.
func (t *Tester) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("self-test")
	ticker := t.Clock.NewTicker(t.Interval)
	defer ticker.Stop()
	for last := ""; ; {
		r := Result{Err: t.Test(ctx), At: t.Clock.Now()}
		if ctx.Err() != nil {
			return nil
		}
		t.Metrics.observe(r)
		if t.Publish != nil {
			if err := t.Publish(ctx, r); err != nil {
				log.Error(err, "Cannot publish the result of the self-test")
			}
		}
		last = logChange(log.Error, log.Info, last, r)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// logChange logs what is new, and returns it.
func logChange(failed func(error, string, ...any), well func(string, ...any), last string, r Result) string {
	now := "well"
	if r.Err != nil {
		now = r.Err.Error()
	}
	switch {
	case now == last:
	case r.Err != nil:
		failed(r.Err, "The self-test failed: binds may not be judged")
	default:
		well("The self-test was refused, as it has to be")
	}
	return now
}

// Test asks once for each thing that has to be refused.
func (t *Tester) Test(ctx context.Context) error {
	errs := []error{t.coldStart(ctx), t.alike(ctx)}
	if t.Member != nil {
		member, err := t.Member(ctx)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("looking for a member to test binds with: %w", err))
		case member != nil:
			errs = append(errs, t.bind(ctx, member))
		}
	}
	return errors.Join(errs...)
}

// alike: a test in one namespace says something of the others.
func (t *Tester) alike(ctx context.Context) error {
	if t.Unlike == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	unlike, err := t.Unlike(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("comparing webhooks: %w", err)
	case len(unlike) > 0:
		return fmt.Errorf("webhooks %s have other rules, conditions or CAs than where nothing is enforced: they may not be asked; "+
			"look at ValidatingWebhookConfiguration freshbind", strings.Join(unlike, ", "))
	}
	return nil
}

// coldStart asks for a Sandbox of a claim that does not exist.
func (t *Tester) coldStart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	claim := t.claim()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"podTemplate": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "none", "image": "registry.invalid/none"},
		}}},
	}}}
	u.SetGroupVersionKind(t.Sandboxes)
	u.SetNamespace(t.Namespace)
	u.SetName(claim.Name)
	u.SetAnnotations(map[string]string{settings.SelfTestKey: "true"})
	u.SetOwnerReferences([]metav1.OwnerReference{claim})
	err := t.Client.Create(ctx, u, client.DryRunAll)
	return judge("coldstart", "creating a Sandbox in namespace "+t.Namespace, claim.Name, err)
}

// bind asks for giving a member to a claim that does not exist.
func (t *Tester) bind(ctx context.Context, member client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	before, ok := member.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copying member %s: it is no object", member.GetName())
	}
	claim := t.claim()
	member.SetOwnerReferences(append(member.GetOwnerReferences(), claim))
	annotations := map[string]string{settings.SelfTestKey: "true"}
	for k, v := range member.GetAnnotations() {
		annotations[k] = v
	}
	member.SetAnnotations(annotations)
	err := t.Client.Patch(ctx, member, client.MergeFrom(before), client.DryRunAll)
	if client.IgnoreNotFound(err) == nil && err != nil && !refusal.MatchString(err.Error()) {
		// It was deleted, or bound, a moment ago.
		return nil
	}
	return judge("bind", fmt.Sprintf("binding member %s/%s", before.GetNamespace(), before.GetName()), "", err)
}

func (t *Tester) claim() metav1.OwnerReference {
	apiVersion, kind := t.Claims.ToAPIVersionAndKind()
	return metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, UID: uuid.NewUUID(),
		Name: fmt.Sprintf("freshbind-self-test-%08x", rand.Uint32()),
	}
}
