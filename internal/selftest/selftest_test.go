package selftest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/freshbind/freshbind/internal/settings"
)

var (
	sandboxes = schema.GroupVersionKind{Group: "agents.x-k8s.io", Version: "v1beta1", Kind: "Sandbox"}
	claims    = schema.GroupVersionKind{Group: "extensions.agents.x-k8s.io", Version: "v1beta1", Kind: "SandboxClaim"}
)

// answers is an API server that answers writes of sandboxes with these errors.
type answers struct {
	client.Writer
	create, patch func(client.Object) error
	dry           bool
}

func (a *answers) Create(_ context.Context, obj client.Object, opts ...client.CreateOption) error {
	o := (&client.CreateOptions{}).ApplyOptions(opts)
	a.dry = len(o.DryRun) == 1
	return a.create(obj)
}

func (a *answers) Patch(_ context.Context, obj client.Object, _ client.Patch, opts ...client.PatchOption) error {
	o := (&client.PatchOptions{}).ApplyOptions(opts)
	a.dry = a.dry && len(o.DryRun) == 1
	return a.patch(obj)
}

func denied(webhook, text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists,
		Message: `admission webhook "` + webhook + `" denied the request: ` + text,
	}}
}

func claimOf(o client.Object) string {
	return o.GetOwnerReferences()[len(o.GetOwnerReferences())-1].Name
}

func wellRefused(webhook string) func(client.Object) error {
	return func(o client.Object) error { return denied(webhook, "ClaimGone: claim "+claimOf(o)+" does not exist") }
}

func says(err error) func(client.Object) error { return func(client.Object) error { return err } }

func TestAnswers(t *testing.T) {
	well, bound := wellRefused("coldstart.freshbind.dev"), wellRefused("bind.freshbind.dev")
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "sandboxes"}, "m")
	for name, tc := range map[string]struct {
		create, patch func(client.Object) error
		// want is part of the error; empty for none.
		want string
	}{
		"refused":                     {well, bound, ""},
		"refused by the open variant": {wellRefused("open-coldstart.freshbind.dev"), bound, ""},
		"where nobody says enforce":   {wellRefused("audit-coldstart.freshbind.dev"), bound, ""},
		"where a pool says enforce":   {well, wellRefused("pool-bind.freshbind.dev"), ""},
		"a member's own fault":        {well, says(denied("bind.freshbind.dev", "MemberTerminating: deletion began")), ""},
		"the member is gone":          {well, says(gone), ""},
		"accepted":                    {says(nil), bound, "creating a Sandbox in namespace ns was accepted"},
		"bind accepted":               {well, says(nil), "binding member prod/m was accepted"},
		"not asked about this claim":  {says(denied("coldstart.freshbind.dev", "ClaimGone: claim x does not exist")), bound, "not by webhook coldstart"},
		"another webhook of ours":     {says(denied("birth.freshbind.dev", "StaleRevision: x")), bound, "not by webhook coldstart"},
		"somebody else's":             {says(denied("policy.example.com", "No: x")), bound, "was not judged"},
		"undecided":                   {says(denied("coldstart.freshbind.dev", "could not decide: reading claim")), bound, "could not be judged"},
		"no answer":                   {says(errors.New(`Internal error occurred: failed calling webhook "coldstart.freshbind.dev": x509: unknown authority`)), bound, "gets no answer"},
		"no rights":                   {says(apierrors.NewForbidden(schema.GroupResource{Resource: "sandboxes"}, "", errors.New("no"))), bound, "right to create"},
		"no namespace":                {says(apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns")), bound, "selfTest.namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			api := &answers{create: tc.create, patch: tc.patch}
			tester := &Tester{
				Client: api, Namespace: "ns", Sandboxes: sandboxes, Claims: claims,
				Member: func(context.Context) (client.Object, error) {
					m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "m"}}
					m.SetGroupVersionKind(sandboxes)
					return m, nil
				},
			}
			err := tester.Test(t.Context())
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
			if !api.dry {
				t.Error("a write was no dry run")
			}
		})
	}
}

// A refusal of one webhook says nothing of others that are not like it.
func TestWebhooksThatAreNotAlikeAreNotTested(t *testing.T) {
	for name, tc := range map[string]struct {
		unlike []string
		err    error
		want   string
	}{
		"alike":     {nil, nil, ""},
		"one":       {[]string{"coldstart.freshbind.dev"}, nil, "webhooks coldstart.freshbind.dev have other rules"},
		"not known": {nil, errors.New("no answer"), "comparing webhooks: no answer"},
	} {
		tester := &Tester{
			Client: &answers{create: wellRefused("coldstart.freshbind.dev")}, Namespace: "ns", Sandboxes: sandboxes, Claims: claims,
			Unlike: func(context.Context) ([]string, error) { return tc.unlike, tc.err },
		}
		err := tester.Test(t.Context())
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error is %v, want %q", name, err, tc.want)
		}
	}
}

func TestEachResultIsToldOnce(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1700000000, 0))
	answer := make(chan error, 1)
	results := make(chan Result, 1)
	m := NewMetrics(prometheus.NewRegistry())
	tester := &Tester{
		Client: &answers{create: func(o client.Object) error {
			if err := <-answer; err != nil {
				return err
			}
			return wellRefused("coldstart.freshbind.dev")(o)
		}},
		Namespace: "ns", Sandboxes: sandboxes, Claims: claims, Interval: time.Minute, Metrics: m, Clock: clock,
		Publish: func(_ context.Context, r Result) error {
			results <- r
			return nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- tester.Start(ctx) }()
	for _, fault := range []error{nil, errors.New("no answer"), nil} {
		answer <- fault
		r := <-results
		if (r.Err == nil) != (fault == nil) {
			t.Errorf("result %v, want %v", r.Err, fault)
		}
		want := 0.0
		if fault == nil {
			want = 1
		}
		if got := testutil.ToFloat64(m.success); got != want {
			t.Errorf("success is %v, want %v", got, want)
		}
		if got := testutil.ToFloat64(m.timestamp); got != float64(r.At.Unix()) {
			t.Errorf("timestamp is %v, want %v", got, r.At.Unix())
		}
		err := wait.PollUntilContextTimeout(ctx, time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) { return clock.HasWaiters(), nil })
		if err != nil {
			t.Fatal(err)
		}
		clock.Step(time.Minute)
	}
	cancel()
	close(answer)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestPublish(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	leads := false
	p := &Publisher{Reader: c, Writer: c, Namespace: "own", Identity: "me", Leads: func() bool { return leads }, Interval: 30 * time.Second}
	at := time.Unix(1700000000, 0)
	key := types.NamespacedName{Namespace: "own", Name: LeaseName}
	if err := p.Publish(t.Context(), Result{At: at}); err != nil {
		t.Fatal(err)
	}
	var lease coordinationv1.Lease
	if err := c.Get(t.Context(), key, &lease); !apierrors.IsNotFound(err) {
		t.Fatalf("who does not lead has written: %v", err)
	}
	leads = true
	for _, tc := range []struct {
		err  error
		want string
	}{{nil, Passed}, {errors.New("x509"), "x509"}, {errors.New(strings.Repeat("x", 5000)), strings.Repeat("x", maxDetail)}} {
		if err := p.Publish(t.Context(), Result{At: at, Err: tc.err}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), key, &lease); err != nil {
			t.Fatal(err)
		}
		if got := lease.Annotations[settings.SelfTestKey]; got != tc.want {
			t.Errorf("the lease says %q, want %q", got, tc.want)
		}
		if !lease.Spec.RenewTime.Equal(&metav1.MicroTime{Time: at}) || *lease.Spec.LeaseDurationSeconds != 90 || *lease.Spec.HolderIdentity != "me" {
			t.Errorf("the lease is %+v", lease.Spec)
		}
	}
}
