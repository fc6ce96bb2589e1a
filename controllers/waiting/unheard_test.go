package waiting

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/controllers/hints"
	"github.com/freshbind/freshbind/test/builders"
)

const (
	callFailed = `Error seen: failed to complete adoption of "m": Internal error occurred: failed calling webhook "bind.freshbind.dev": failed to call webhook: Post "https://freshbind": context deadline exceeded`
	elses      = `Error seen: Internal error occurred: failed calling webhook "bind.example.com": failed to call webhook: context deadline exceeded`
	quota      = `Error seen: sandboxes "c1" is forbidden: exceeded quota: few`
)

func TestWhomAnAnswerWasLostFor(t *testing.T) {
	claim := func(messages ...any) *unstructured.Unstructured {
		conditions := []any{}
		for _, m := range messages {
			conditions = append(conditions, map[string]any{"type": "Ready", "message": m})
		}
		return builders.MakeClaim("ns", "c1").UID("u").Set(conditions, "status", "conditions").Obj()
	}
	broken := builders.MakeClaim("ns", "c1").UID("u").Set([]any{"no condition"}, "status", "conditions").Obj()
	served := claim(callFailed)
	_ = unstructured.SetNestedField(served.Object, "m", "status", "sandbox", "name")
	cases := map[string]struct {
		claim *unstructured.Unstructured
		uid   types.UID
		has   []string
		err   error
		// again: it was looked at before.
		again bool
		// want is who is woken, later who is looked at once more.
		want, later []string
	}{
		"our webhook gave no answer":          {claim(callFailed), "u", nil, nil, false, []string{"ns/c1"}, nil},
		"the second condition says so":        {claim("Sandbox not ready", callFailed), "u", nil, nil, false, []string{"ns/c1"}, nil},
		"the cache shows a sandbox":           {claim(callFailed), "u", []string{"m"}, errors.New("must not be read"), false, nil, nil},
		"it has one that no cache shows":      {served, "u", nil, nil, false, nil, nil},
		"another one of that name":            {claim(callFailed), "earlier", nil, nil, false, nil, nil},
		"somebody else's webhook":             {claim(elses), "u", nil, nil, false, nil, []string{"ns/c1"}},
		"no quota":                            {claim(quota), "u", nil, nil, false, nil, []string{"ns/c1"}},
		"nothing said":                        {claim(), "u", nil, nil, false, nil, []string{"ns/c1"}},
		"a condition that says nothing known": {claim(int64(1)), "u", nil, nil, false, nil, []string{"ns/c1"}},
		"no conditions at all":                {broken, "u", nil, nil, false, nil, []string{"ns/c1"}},
		"nothing said, the second time":       {claim(), "u", nil, nil, true, nil, nil},
		"said the second time":                {claim(callFailed), "u", nil, nil, true, []string{"ns/c1"}, nil},
		"gone":                                {nil, "u", nil, nil, false, nil, nil},
		"cannot be read":                      {claim(callFailed), "u", nil, errors.New("etcd is away"), false, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objs []client.Object
			if tc.claim != nil {
				objs = append(objs, tc.claim)
			}
			c := newClaims(t, in(true, nil), objs...)
			c.hints = hints.New[reconcile.Request]()
			if tc.err != nil {
				c.live = unreadable{tc.err}
			}
			u := &Unheard{claims: c, hints: hints.New[allowed](), holds: func(_ context.Context, namespace, uid string) []string {
				if namespace != "ns" || uid != string(tc.uid) {
					t.Errorf("asked what %s in %s has", uid, namespace)
				}
				return tc.has
			}}
			result, err := u.Reconcile(t.Context(), allowed{types.NamespacedName{Namespace: "ns", Name: "c1"}, tc.uid, tc.again})
			if wantErr := tc.err != nil && tc.has == nil; (err != nil) != wantErr {
				t.Fatalf("Reconcile() error = %v, want error %t", err, wantErr)
			}
			var got []string
			for len(c.hints) > 0 {
				got = append(got, (<-c.hints).Key.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("woken (-want,+got):\n%s", diff)
			}
			var later []string
			for len(u.hints) > 0 {
				next := <-u.hints
				if later = append(later, next.Key.String()); !next.Key.again || next.Key.uid != tc.uid || next.After != unheardAgain {
					t.Errorf("to be looked at again: %v", next)
				}
			}
			if diff := cmp.Diff(tc.later, later); diff != "" {
				t.Errorf("looked at once more (-want,+got):\n%s", diff)
			}
			// The next try of who is woken may not get as far as an answer.
			again := time.Duration(0)
			if tc.want != nil {
				again = unheardAgain
			}
			if result.RequeueAfter != again {
				t.Errorf("looked at again after %s, want %s", result.RequeueAfter, again)
			}
		})
	}
}

// unreadable is an API server that answers nothing.
type unreadable struct{ err error }

func (u unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return u.err
}

func (u unreadable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return u.err
}

func TestAnAnswerHasTimeToBeHeard(t *testing.T) {
	u := &Unheard{hints: hints.New[allowed]()}
	u.Note("ns", "c1", "u")
	want := hints.Hint[allowed]{Key: allowed{types.NamespacedName{Namespace: "ns", Name: "c1"}, "u", false}, After: heardWithin}
	if got := <-u.hints; got != want {
		t.Errorf("noted %v, want %v", got, want)
	}
}
