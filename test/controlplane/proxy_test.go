package controlplane

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// lateWorld is a proxy, a client through it and one past it.
type lateWorld struct {
	t            *testing.T
	proxy        *Proxy
	late, direct kubernetes.Interface
}

func newLateWorld(t *testing.T, c *Cluster, contentType string) *lateWorld {
	t.Helper()
	proxy, err := c.NewProxy(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg := proxy.Config(c.Config())
	cfg.ContentType = contentType
	cfg.AcceptContentTypes = contentType + ",application/json"
	return &lateWorld{t: t, proxy: proxy, late: clientFor(t, cfg), direct: clientFor(t, c.Config())}
}

// watches opens watches on config maps and on secrets, through the proxy.
func (w *lateWorld) watches(options metav1.ListOptions) (configMaps, secrets watch.Interface) {
	w.t.Helper()
	configMaps, err := w.late.CoreV1().ConfigMaps("default").Watch(w.t.Context(), options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(configMaps.Stop)
	secrets, err = w.late.CoreV1().Secrets("default").Watch(w.t.Context(), options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(secrets.Stop)
	return configMaps, secrets
}

// now makes a watch begin at the present state.
func (w *lateWorld) now() metav1.ListOptions {
	w.t.Helper()
	list, err := w.direct.CoreV1().ConfigMaps("default").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return metav1.ListOptions{ResourceVersion: list.ResourceVersion}
}

func (w *lateWorld) createSecret(name string) {
	w.t.Helper()
	_, err := w.direct.CoreV1().Secrets("default").Create(w.t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

// arrive wants events for exactly these objects next, in order.
func arrive(t *testing.T, w watch.Interface, want ...string) {
	t.Helper()
	var got []string
	for range want {
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				t.Fatalf("watch ended after %v", got)
			}
			accessor, err := meta.Accessor(event.Object)
			if err != nil {
				t.Fatalf("event %s: %v", event.Type, apierrors.FromObject(event.Object))
			}
			got = append(got, accessor.GetName())
		case <-time.After(timeout):
			t.Fatalf("waited too long, got only %v", got)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want,+got):\n%s", diff)
	}
}

func nothing(t *testing.T, w watch.Interface) {
	t.Helper()
	select {
	case event := <-w.ResultChan():
		t.Errorf("event %s arrived too early", event.Type)
	default:
	}
}

var contentTypes = map[string]string{
	"json": "application/json", "protobuf": "application/vnd.kubernetes.protobuf", "cbor": "application/cbor",
}

func testProxyHolds(t *testing.T, c *Cluster) {
	for encoding, contentType := range contentTypes {
		t.Run(encoding, func(t *testing.T) {
			w := newLateWorld(t, c, contentType)
			w.proxy.Hold("", "configmaps")
			configMaps, secrets := w.watches(w.now())
			name := "held-" + encoding
			createConfigMap(t, w.direct, name+"-1")
			createConfigMap(t, w.direct, name+"-2")
			w.createSecret(name)
			arrive(t, secrets, name)
			nothing(t, configMaps)
			if _, err := w.late.CoreV1().ConfigMaps("default").Get(t.Context(), name+"-2", metav1.GetOptions{}); err != nil {
				t.Errorf("a GET does not see what only events may not show: %v", err)
			}
			w.proxy.Release("", "configmaps")
			arrive(t, configMaps, name+"-1", name+"-2")
		})
	}
}

func testProxyDelays(t *testing.T, c *Cluster) {
	w := newLateWorld(t, c, "application/json")
	configMaps, secrets := w.watches(w.now())
	createConfigMap(t, w.direct, "in-time")
	arrive(t, configMaps, "in-time")

	// The delay is far beyond the test: only its change can deliver anything.
	w.proxy.SetDelay("", "configmaps", time.Hour)
	var want []string
	for i := range 5 {
		want = append(want, fmt.Sprintf("delayed-%d", i))
		createConfigMap(t, w.direct, want[i])
	}
	w.createSecret("not-delayed")
	arrive(t, secrets, "not-delayed")
	nothing(t, configMaps)
	w.proxy.SetDelay("", "configmaps", time.Millisecond)
	createConfigMap(t, w.direct, "last")
	arrive(t, configMaps, append(want, "last")...)
}

func testProxyInitial(t *testing.T, c *Cluster) {
	w := newLateWorld(t, c, "application/vnd.kubernetes.protobuf")
	w.proxy.Hold("", "secrets")
	w.createSecret("initial")
	yes := true
	_, secrets := w.watches(metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	// All there is arrives, up to the bookmark; the next event is held back.
	for done := false; !done; {
		select {
		case event := <-secrets.ResultChan():
			done = event.Type == watch.Bookmark
		case <-time.After(timeout):
			t.Fatal("waited too long for the initial objects")
		}
	}
	w.createSecret("later")
	createConfigMap(t, w.direct, "control")
	nothing(t, secrets)
	w.proxy.Release("", "secrets")
	arrive(t, secrets, "later")
}

func testProxyStrangers(t *testing.T, c *Cluster) {
	w := newLateWorld(t, c, "application/json")
	stranger := rest.CopyConfig(w.proxy.Config(c.Config()))
	stranger.BearerToken = "guessed"
	_, err := clientFor(t, stranger).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsUnauthorized(err) {
		t.Errorf("a stranger got %v, want Unauthorized", err)
	}
	if _, err := c.NewProxy(2); err == nil {
		t.Error("a proxy was made for an API server that does not exist")
	}
}
