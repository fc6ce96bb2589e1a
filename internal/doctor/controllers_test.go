package doctor

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/webhooks"
)

var served = platform.Served{
	Sandboxes: schema.GroupVersionKind{Group: "agents.x-k8s.io", Version: "v1beta1", Kind: "Sandbox"},
	Claims:    schema.GroupVersionKind{Group: "extensions.agents.x-k8s.io", Version: "v1beta1", Kind: "SandboxClaim"},
}

func (d *Doctor) withPlatform() *Doctor {
	d.Kinds = func(context.Context) (platform.Served, bool, error) { return served, true, nil }
	return d
}

func TestPoolControllers(t *testing.T) {
	const strange = `system:serviceaccount:ns:a"b`
	for name, tc := range map[string]struct {
		users, may, namespaces []string
		want                   Status
		says                   string
	}{
		"the usual one":               {[]string{"usual"}, []string{"usual"}, nil, OK, "usual counts"},
		"one of two":                  {[]string{"former", strange}, []string{strange}, nil, OK, "counts as a pool controller"},
		"in one namespace":            {[]string{"usual"}, []string{"usual in b"}, []string{"a", "b"}, OK, "namespace b"},
		"in a namespace of no matter": {[]string{"usual"}, []string{"usual in c"}, []string{"a", "b"}, Failed, "else than usual"},
		"somebody else":               {[]string{"usual", "former"}, []string{"other"}, nil, Failed, "else than usual, former"},
	} {
		t.Run(name, func(t *testing.T) {
			mutating, validating := webhooks.Configurations(agentsandbox.Admission(), webhooks.Endpoint{}, webhooks.Scope{PoolControllers: tc.users})
			d := newDoctor(t, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
				review := obj.(*authorizationv1.SubjectAccessReview)
				asked := review.Spec.User
				if in := review.Spec.ResourceAttributes.Namespace; in != "" {
					asked += " in " + in
				}
				for _, may := range tc.may {
					review.Status.Allowed = review.Status.Allowed || may == asked
				}
				return nil
			}}, mutating, validating).withPlatform()
			d.Namespaces = tc.namespaces
			found, err := d.controllers(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != 1 || found[0].Status != tc.want || !strings.Contains(found[0].Found, tc.says) {
				t.Errorf("found %v, want %s with %q", found, tc.want, tc.says)
			}
		})
	}
}

// Who may count as a pool controller is for the installation to say.
func TestOtherPoolControllersAreNoDifference(t *testing.T) {
	mutating, validating := webhooks.Configurations(agentsandbox.Admission(), webhooks.Endpoint{}, webhooks.Scope{PoolControllers: []string{"other"}})
	d := newDoctor(t, interceptor.Funcs{}, mutating, validating)
	d.Mutating, d.Validating = webhooks.Configurations(agentsandbox.Admission(), webhooks.Endpoint{}, webhooks.Scope{})
	found, err := d.webhooks(t.Context())
	if err != nil || Sick(found) {
		t.Errorf("error %v, found %v", err, found)
	}
}

// Who lacks a right, or a way to the API server, has not seen Freshbind fail.
func TestRefusalThatCouldNotBeTried(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "sandboxes"}, "x", errors.New("by a quota"))
	away := &url.Error{Op: "Post", URL: "https://api", Err: errors.New("connection refused")}
	for name, tc := range map[string]struct {
		review, create error
		allowed        bool
		want           Status
		says           string
	}{
		"no right":                   {nil, nil, false, Unknown, "you may not create sandboxes"},
		"no way to ask":              {away, nil, false, Unknown, "connection refused"},
		"no way to try":              {nil, away, true, Unknown, "connection refused"},
		"accepted":                   {nil, nil, true, Failed, "was accepted"},
		"another rule is in the way": {nil, denied, true, Failed, "by a quota"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoctor(t, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
				if review, ok := obj.(*authorizationv1.SelfSubjectAccessReview); ok {
					review.Status.Allowed = tc.allowed
					return tc.review
				}
				return tc.create
			}}).withPlatform()
			found, err := d.refusal(t.Context())
			if err != nil {
				found = []Finding{{Status: Unknown, Found: err.Error()}}
			}
			if len(found) != 1 || found[0].Status != tc.want || !strings.Contains(found[0].Found, tc.says) {
				t.Errorf("found %v, want %s with %q", found, tc.want, tc.says)
			}
		})
	}
}
