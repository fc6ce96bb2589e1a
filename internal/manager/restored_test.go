package manager

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func TestALeaseThatGoesBack(t *testing.T) {
	away := errors.New("connection refused")
	cases := map[string]struct {
		// answers are versions of the lease; "" is none.
		answers []string
		want    bool
	}{
		"the first":                    {[]string{"7"}, false},
		"later ones":                   {[]string{"7", "8", "100"}, false},
		"the same once more":           {[]string{"7", "7"}, false},
		"an earlier one":               {[]string{"7", "100", "8"}, true},
		"an earlier one, after a time": {[]string{"100", "", "", "99"}, true},
		"no answer":                    {[]string{"100", ""}, false},
		"versions without an order":    {[]string{"b", "a"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newStoreHistory()
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- h.Start(ctx) }()
				for i, version := range tc.answers {
					answer, failed := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}, error(nil)
					if version == "" {
						answer, failed = nil, away
					}
					got, err := h.note(answer, failed)
					wantErr := failed
					if tc.want && i == len(tc.answers)-1 {
						answer, wantErr = nil, errRestored
					}
					if !errors.Is(err, wantErr) || got != answer {
						t.Errorf("answer %d: note() = %v, %v, want %v, %v", i, got, err, answer, wantErr)
					}
				}
				synctest.Wait()
				select {
				case err := <-ended:
					if !tc.want || !errors.Is(err, errRestored) {
						t.Errorf("Start() = %v before its context ended, want that %t", err, tc.want)
					}
				default:
					if tc.want {
						t.Error("Start() goes on")
					}
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// A process that knows another past must not renew what it read before.
func TestALeaseThatWentBackIsNotRenewed(t *testing.T) {
	h := newStoreHistory()
	version := func(v string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: v}}
	}
	for _, v := range []string{"100", "7"} {
		_, _ = h.note(version(v), nil)
	}
	if l, err := h.note(version("101"), nil); l != nil || !errors.Is(err, errRestored) {
		t.Errorf("note() of a later version = %v, %v, want %v", l, err, errRestored)
	}
}

// Every way to the lease is looked at.
func TestTheLeaseTellsOfARestore(t *testing.T) {
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	get := func(l *lease) error { _, _, err := l.Get(context.Background()); return err }
	create := func(l *lease) error { return l.Create(context.Background(), mine) }
	update := func(l *lease) error { return l.Update(context.Background(), mine) }
	for name, again := range map[string]func(*lease) error{"get": get, "create": create, "update": update} {
		t.Run(name, func(t *testing.T) {
			versions, asked := []string{"100", "7"}, []string(nil)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Method)
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"freshbind","resourceVersion":"` + versions[len(asked)-1] + `"}}`))
			}))
			defer server.Close()
			l, err := newLease(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "ns")
			if err != nil {
				t.Fatal(err)
			}
			if err := get(l); err != nil {
				t.Fatal(err)
			}
			if err := again(l); !errors.Is(err, errRestored) {
				t.Errorf("error = %v, want %v", err, errRestored)
			}
			if l.held() {
				t.Error("the lease is held by who knows another past")
			}
			want := []string{http.MethodGet, map[string]string{"get": http.MethodGet, "create": http.MethodPost, "update": http.MethodPut}[name]}
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("requests (-want,+got):\n%s", diff)
			}
		})
	}
}

// The process ends, whether it leads or not.
func TestAProcessThatKnowsAnotherPastEnds(t *testing.T) {
	o := newProcess(Options{LeaderElect: true, LeaderElectNamespace: "ns", HealthAddress: "0", MetricsAddress: "0", ProfileAddress: "0"})
	mgr, err := o.newManager(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if o.history.NeedLeaderElection() {
		t.Fatal("a follower goes on")
	}
	for _, version := range []string{"100", "7"} {
		_, _ = o.history.note(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}, nil)
	}
	if err := mgr.Start(t.Context()); !errors.Is(err, errRestored) {
		t.Errorf("Start() = %v, want %v", err, errRestored)
	}
}
