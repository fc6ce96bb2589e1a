package servingcert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/cert"
	clocktesting "k8s.io/utils/clock/testing"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// pair is a new certificate of a CA of its own.
func pair(t *testing.T) (chain, key []byte) {
	t.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return chain, key
}

func secret(name string, chain, key []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Data:       map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key},
	}
}

func newSource(client *fake.Clientset, now time.Time) *Source {
	return New(client, types.NamespacedName{Namespace: "ns", Name: "tls"}, prometheus.NewRegistry(), clocktesting.NewFakePassiveClock(now))
}

func leafOf(t *testing.T, chain []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(chain)
	return block.Bytes
}

func TestTake(t *testing.T) {
	now := time.Now()
	chain, key := pair(t)
	otherChain, otherKey := pair(t)
	leaf, err := x509.ParseCertificate(leafOf(t, chain))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		before *corev1.Secret
		next   *corev1.Secret
		at     time.Time
		// want is what is served afterwards.
		want    []byte
		wantErr string
	}{
		"the first":              {nil, secret("tls", chain, key), now, chain, ""},
		"another":                {secret("tls", otherChain, otherKey), secret("tls", chain, key), now, chain, ""},
		"the same":               {secret("tls", chain, key), secret("tls", chain, key), now, chain, ""},
		"no certificate":         {secret("tls", chain, key), secret("tls", nil, otherKey), now, chain, "tls.crt is missing"},
		"no key":                 {secret("tls", chain, key), secret("tls", otherChain, nil), now, chain, "tls.key is missing"},
		"another's key":          {secret("tls", chain, key), secret("tls", otherChain, key), now, chain, "does not match"},
		"no PEM":                 {secret("tls", chain, key), secret("tls", []byte("x"), otherKey), now, chain, "tls.crt"},
		"the first is expired":   {nil, secret("tls", chain, key), leaf.NotAfter.Add(time.Hour), chain, ""},
		"all are expired":        {secret("tls", otherChain, otherKey), secret("tls", chain, key), leaf.NotAfter.Add(24 * time.Hour), chain, ""},
		"broken before anything": {nil, secret("tls", chain, otherKey), now, nil, "does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource(fake.NewClientset(), tc.at)
			if tc.before != nil {
				if _, err := s.take(tc.before); err != nil {
					t.Fatal(err)
				}
			}
			_, err := s.take(tc.next)
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("error is %v, want %q", err, tc.wantErr)
			}
			got, err := s.GetCertificate(nil)
			if tc.want == nil {
				if err == nil || s.Ready(nil) == nil {
					t.Error("there is no certificate, and nothing says so")
				}
				return
			}
			if err != nil || s.Ready(nil) != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Certificate[0], leafOf(t, tc.want)) {
				t.Error("another certificate is served")
			}
			if n := testutil.ToFloat64(s.expiry); n != float64(got.Leaf.NotAfter.Unix()) {
				t.Errorf("the metric says %v, want %v", n, got.Leaf.NotAfter)
			}
		})
	}
}

func TestAnExpiredOneDoesNotReplaceAGoodOne(t *testing.T) {
	short, shortKey := expiringBefore(t)
	chain, key := pair(t)
	old, err := tls.X509KeyPair(short, shortKey)
	if err != nil {
		t.Fatal(err)
	}
	s := newSource(fake.NewClientset(), old.Leaf.NotAfter.Add(time.Minute))
	if _, err := s.take(secret("tls", chain, key)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.take(secret("tls", short, shortKey)); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("error is %v", err)
	}
}

// expiringBefore is a certificate that expires before those of pair.
func expiringBefore(t *testing.T) (chain, key []byte) {
	t.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{Host: "localhost", MaxAge: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return chain, key
}

// noteWatch tells when secrets are watched: a fake API loses what happens
// between list and watch.
func noteWatch(client *fake.Clientset) *atomic.Bool {
	var watched atomic.Bool
	client.PrependWatchReactor("secrets", func(a clienttesting.Action) (bool, watch.Interface, error) {
		w, err := client.Tracker().Watch(a.GetResource(), a.GetNamespace())
		watched.Store(true)
		return true, w, err
	})
	return &watched
}

// log collects what is logged.
type log struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (l *log) write(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines.WriteString(prefix + args + "\n")
}

func (l *log) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

func TestTheSecretIsFollowedAndTheKeyNeverLogged(t *testing.T) {
	chain, key := pair(t)
	nextChain, nextKey := pair(t)
	client := fake.NewClientset(secret("other", nextChain, nextKey))
	watched := noteWatch(client)
	s := newSource(client, time.Now())
	var logged log
	ctx, cancel := context.WithCancel(logf.IntoContext(t.Context(), funcr.New(logged.write, funcr.Options{Verbosity: 10})))
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	eventually := func(what string, is func() bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) { return is(), nil })
		if err != nil {
			t.Fatalf("%s: %v; logged: %s", what, err, logged.text())
		}
	}
	serves := func(chain []byte) func() bool {
		return func() bool {
			c, err := s.GetCertificate(nil)
			return err == nil && bytes.Equal(c.Certificate[0], leafOf(t, chain))
		}
	}
	secrets := client.CoreV1().Secrets("ns")
	eventually("a watch", watched.Load)
	eventually("waiting", func() bool { return strings.Contains(logged.text(), "Waiting for the serving certificate") })
	if err := s.Ready(nil); err == nil || !strings.Contains(err.Error(), "ns/tls") {
		t.Errorf("not ready: %v", err)
	}
	if _, err := secrets.Create(ctx, secret("tls", chain, key), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually("the first certificate", serves(chain))
	if _, err := secrets.Update(ctx, secret("tls", nextChain, key), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually("a broken one is reported", func() bool { return strings.Contains(logged.text(), "Cannot use the certificate") })
	if !serves(chain)() {
		t.Error("a broken certificate has replaced a good one")
	}
	if _, err := secrets.Update(ctx, secret("tls", nextChain, nextKey), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually("the next certificate", serves(nextChain))
	if err := secrets.Delete(ctx, "tls", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually("the delete is reported", func() bool { return strings.Contains(logged.text(), "was deleted") })
	if !serves(nextChain)() {
		t.Error("a deleted Secret has taken the certificate away")
	}
	for _, k := range [][]byte{key, nextKey} {
		block, _ := pem.Decode(k)
		if text := logged.text(); strings.Contains(text, string(k)) || strings.Contains(text, string(block.Bytes)) || strings.Contains(text, "PRIVATE KEY") {
			t.Errorf("the key was logged: %s", text)
		}
	}
}
