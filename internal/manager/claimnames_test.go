package manager

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/webhooks"
)

func TestClaimNames(t *testing.T) {
	pod := builders.MakePod(builders.MakeColdStart(builders.MakeClaim("ns", "c1").Obj(), builders.MakeTemplate("ns", "python").Obj()).Obj()).Obj()
	release := func(uid string) webhooks.Denial {
		return webhooks.Denial{Write: platform.Write{
			Operation: freshness.Release, Old: pod, New: pod, Claim: freshness.Owner{Kind: freshness.OwnedByClaim, UID: uid},
		}}
	}
	reported := make(chan webhooks.Denial, unnamedBuffer)
	var asked []string
	names := newClaimNames(func(_ context.Context, namespace, uid string) (string, error) {
		asked = append(asked, namespace+"/"+uid)
		if uid == "unreadable" {
			return "", errors.New("etcd is away")
		}
		return map[string]string{"u1": "c1"}[uid], nil
	}, func(d webhooks.Denial) { reported <- d })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- names.Start(ctx) }()

	kept := reference(pod.GroupVersionKind(), "ns", pod.GetName(), string(pod.GetUID()))
	var got []string
	for _, uid := range []string{"u1", "unreadable", "gone", "u1"} {
		if !names.take(release(uid)) {
			t.Fatalf("a release for %s is not taken", uid)
		}
		select {
		case d := <-reported:
			got = append(got, d.Claim.Name)
			if diff := cmp.Diff(platform.Write{Operation: freshness.Release, Old: kept, Claim: d.Claim}, d.Write); diff != "" {
				t.Errorf("reported is more, or less, than the Pod's name (-want,+got):\n%s", diff)
			}
		case <-time.After(10 * time.Minute):
			t.Fatalf("the release for %s is never reported", uid)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"c1", "", "", "c1"}, got); diff != "" {
		t.Errorf("claims (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ns/u1", "ns/unreadable", "ns/gone"}, asked); diff != "" {
		t.Errorf("asked for (-want,+got):\n%s", diff)
	}
}

// What needs no name, and what finds the queue full, is reported at once.
func TestClaimNamesTakesOnlyWhatLacksOne(t *testing.T) {
	names := newClaimNames(nil, nil)
	pod := reference(corev1.SchemeGroupVersion.WithKind("Pod"), "ns", "p", "u")
	claim := freshness.Owner{Kind: freshness.OwnedByClaim, UID: "u"}
	named := freshness.Owner{Kind: freshness.OwnedByClaim, Name: "c1", UID: "u"}
	cases := map[string]struct {
		write platform.Write
		want  bool
	}{
		"release of v0.2": {platform.Write{Operation: freshness.Release, Old: pod, Claim: claim}, true},
		"release of v0.1": {platform.Write{Operation: freshness.Release}, false},
		"bind":            {platform.Write{Operation: freshness.Bind, Claim: named}, false},
		"warm start":      {platform.Write{Operation: freshness.WarmStart, Claim: named}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := names.take(webhooks.Denial{Write: tc.write}); got != tc.want {
				t.Errorf("take() = %t, want %t", got, tc.want)
			}
		})
	}
	full := webhooks.Denial{Write: platform.Write{Operation: freshness.Release, Old: pod, Claim: claim}}
	for range unnamedBuffer {
		names.take(full)
	}
	if names.take(full) {
		t.Error("take() = true with a full queue: its caller would wait")
	}
}
