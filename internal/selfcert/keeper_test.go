package selfcert

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var where = types.NamespacedName{Namespace: "own", Name: "made"}

func cluster() client.Client {
	meta := metav1.ObjectMeta{Name: "freshbind"}
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: where.Namespace, Name: where.Name}},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "m"}}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "a"}, {Name: "b"}}},
	).Build()
}

func keeper(c client.Client, at time.Time) *Keeper {
	return New(c, c, where, "freshbind", []string{"freshbind"}, []string{"freshbind", "freshbind-by-floor-0"}, testingclock.NewFakeClock(at))
}

// bundles are what the API server trusts.
func bundles(t *testing.T, c client.Client) [][]byte {
	t.Helper()
	var m admissionregistrationv1.MutatingWebhookConfiguration
	var v admissionregistrationv1.ValidatingWebhookConfiguration
	for _, o := range []client.Object{&m, &v} {
		if err := c.Get(t.Context(), types.NamespacedName{Name: "freshbind"}, o); err != nil {
			t.Fatal(err)
		}
	}
	return [][]byte{m.Webhooks[0].ClientConfig.CABundle, v.Webhooks[0].ClientConfig.CABundle, v.Webhooks[1].ClientConfig.CABundle}
}

func stored(t *testing.T, c client.Client) map[string][]byte {
	t.Helper()
	var s corev1.Secret
	if err := c.Get(t.Context(), where, &s); err != nil {
		t.Fatal(err)
	}
	return s.Data
}

// Of replicas that begin at once one makes the certificates, and all webhooks trust
// what is stored.
func TestReplicasMakeOneCertificate(t *testing.T) {
	c := cluster()
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			k := keeper(c, time.Now())
			for {
				if _, err := k.Hold(context.WithoutCancel(t.Context())); err == nil {
					return
				} else if !apierrors.IsConflict(err) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	data := stored(t, c)
	if err := trusted(t, data[CACertKey], data[corev1.TLSCertKey], time.Now()); err != nil {
		t.Error(err)
	}
	for i, bundle := range bundles(t, c) {
		if !slices.Equal(bundle, data[CACertKey]) {
			t.Errorf("webhook %d trusts %q", i, bundle)
		}
	}
	if renewed, err := keeper(c, time.Now()).Hold(t.Context()); len(renewed) > 0 || err != nil {
		t.Errorf("at rest %v is made, %v", renewed, err)
	}
}

// What somebody empties comes back, and a CA that is due is trusted in its turn.
func TestTheAPIServerIsToldOfTheCA(t *testing.T) {
	c := cluster()
	if _, err := keeper(c, time.Now()).Hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	var v admissionregistrationv1.ValidatingWebhookConfiguration
	if err := c.Get(t.Context(), types.NamespacedName{Name: "freshbind"}, &v); err != nil {
		t.Fatal(err)
	}
	v.Webhooks[1].ClientConfig.CABundle = nil
	if err := c.Update(t.Context(), &v); err != nil {
		t.Fatal(err)
	}
	before := stored(t, c)
	for _, years := range []int{0, 8} {
		k := keeper(c, time.Now().AddDate(years, 0, 0))
		if _, err := k.Hold(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, bundle := range bundles(t, c) {
			if !slices.Equal(bundle, stored(t, c)[CACertKey]) {
				t.Errorf("after %d years: webhook %d trusts %q", years, i, bundle)
			}
		}
		k.writer = nil
		if _, err := k.Hold(t.Context()); err != nil {
			t.Errorf("after %d years, when nothing is to be done: %v", years, err)
		}
	}
	if slices.Equal(before[CACertKey], stored(t, c)[CACertKey]) || !slices.Equal(before[CAPrivateKeyKey], stored(t, c)[CAPrivateKeyKey]) {
		t.Error("after eight years there is the same CA, or one with another key")
	}
}

func TestWithoutASecretNothingIsMade(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	if renewed, err := keeper(c, time.Now()).Hold(t.Context()); err == nil || len(renewed) > 0 {
		t.Errorf("made %v, error %v", renewed, err)
	}
}
