package scenario

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/upstream"
)

// A member that is given away late is no ghost for who waits long enough.
func TestPatientProbes(t *testing.T) {
	cases := map[string]struct {
		duration time.Duration
		// given is the burst in which the member is given away.
		given int
		want  Probe
	}{
		"at once":              {given: 1, want: Probe{Members: 1, Claims: 1}},
		"late":                 {given: bursts + 2, want: Probe{Members: 1, Claims: bursts, Ghosts: []string{"m"}}},
		"late, with patience":  {duration: time.Hour, given: bursts + 2, want: Probe{Members: 1, Claims: bursts + 2}},
		"never, with patience": {duration: time.Nanosecond, given: bursts + 1, want: Probe{Members: 1, Claims: bursts, Ghosts: []string{"m"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			member, made := []Member{{Name: "m", UID: "m", Ready: true, Shown: true}}, map[string]bool{}
			list := func(context.Context) ([]Member, error) {
				if len(made) >= tc.given {
					return nil, nil
				}
				return member, nil
			}
			got, err := Drained{
				Replicas: 1, Duration: tc.duration, Members: list,
				Rest: func(context.Context, time.Duration) ([]Member, error) { return member, nil },
				Take: func(_ context.Context, names []string) (int, error) {
					for _, name := range names {
						made[name] = true
					}
					return 0, nil
				},
			}.Ghosts(t.Context(), "probe-")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("probe (-want,+got):\n%s", diff)
			}
		})
	}
}

// TestGhosts makes ghosts as a careless guard would, by answering 404 to the
// bind of a healthy member, and looks whether the probe finds exactly those.
func TestGhosts(t *testing.T) {
	c, err := controlplane.Start(t.Context(), controlplane.Options{Nodes: 2, Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	const release = "v1.0.3"
	if _, err := upstream.Start(t.Context(), c, upstream.Options{Version: release, Log: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	version, err := upstream.APIVersion(release)
	if err != nil {
		t.Fatal(err)
	}
	n, err := CreateNamespace(t.Context(), c.Config(), version, "ghosts", nil)
	if err != nil {
		t.Fatal(err)
	}
	p := Pool{Name: "python", Template: "python", Image: "sandbox:v1", Replicas: 4, Strategy: Recreate}
	if err := n.CreatePool(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	members, err := n.WaitPool(t.Context(), p, p.Image, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{members[0].Name, members[2].Name}
	refuseBinds(t, c, n, want)

	probe, err := n.Ghosts(t.Context(), p, "c")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(probe.Ghosts)
	if diff := cmp.Diff(want, probe.Ghosts); diff != "" {
		t.Errorf("ghosts (-want,+got):\n%s", diff)
	}
	if probe.Members != p.Replicas || probe.Claims != bursts*p.Replicas {
		t.Errorf("probe %+v, want %d members and %d claims", probe, p.Replicas, bursts*p.Replicas)
	}
}

// refuseBinds answers 404 to every update that gives one of the members to a
// claim, and to every dry run, by which it finds out when it is asked.
func refuseBinds(t *testing.T, c *controlplane.Cluster, n *Namespace, members []string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &review)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		var sandbox metav1.PartialObjectMetadata
		if err := json.Unmarshal(review.Request.Object.Raw, &sandbox); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		owner := metav1.GetControllerOf(&sandbox)
		bind := owner != nil && owner.Kind == "SandboxClaim" && slices.Contains(members, sandbox.Name)
		if bind || ptr.Deref(review.Request.DryRun, false) {
			review.Response.Allowed = false
			review.Response.Result = &metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: "no such member",
			}
		}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	install(t, c, server)
	err := until(t.Context(), 10*time.Minute, "the webhook in force", func(ctx context.Context) (string, bool, error) {
		_, err := n.Resource(upstream.Sandboxes).Patch(ctx, members[0], types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"probe":"1"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return "not asked yet", err != nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func install(t *testing.T, c *controlplane.Cluster, server *httptest.Server) {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	configuration := webhookAt(server.URL, ca, admissionregistrationv1.Update)
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), configuration, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
