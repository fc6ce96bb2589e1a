package controlplane

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// grpcMessages frames messages as gRPC does.
func grpcMessages(messages ...string) string {
	var out []byte
	for _, m := range messages {
		out = append(out, 0)
		out = binary.BigEndian.AppendUint32(out, uint32(len(m)))
		out = append(out, m...)
	}
	return string(out)
}

func TestAskedWatch(t *testing.T) {
	cases := map[string]struct {
		stream string
		want   schema.GroupResource
		no     bool
	}{
		"of a CRD": {
			stream: grpcMessages("\x0a\x50\x0a\x26/registry/agents.x-k8s.io/sandboxes/\x12\x26/registry/agents.x-k8s.io/sandboxes0", "\x1a\x00"),
			want:   schema.GroupResource{Group: "agents.x-k8s.io", Resource: "sandboxes"},
		},
		"built in":           {stream: grpcMessages("\x0a\x30\x0a\x0f/registry/pods/\x12\x0f/registry/pods0"), want: schema.GroupResource{Resource: "pods"}},
		"only first message": {stream: grpcMessages("\x1a\x00", "\x0a\x0f/registry/pods/"), no: true},
		"no key":             {stream: grpcMessages("\x0a\x04abcd"), no: true},
		"cut short":          {stream: grpcMessages("\x0a\x0f/registry/pods/")[:8], no: true},
		"empty":              {no: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := &askedWatch{ReadCloser: io.NopCloser(iotest.OneByteReader(strings.NewReader(tc.stream)))}
			passed, err := io.ReadAll(a)
			if err != nil || string(passed) != tc.stream {
				t.Fatalf("passed on %q (%v), want %q", passed, err, tc.stream)
			}
			if got, ok := a.resource(); ok == tc.no || got != tc.want {
				t.Errorf("got %v, found: %t", got, ok)
			}
		})
	}
}

// TestEtcdProxyPassesErrors: etcd says no more of an error than its status, in the frame
// that ends the stream. What is flushed before that end is no status for gRPC.
func TestEtcdProxyPassesErrors(t *testing.T) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	etcd := grpc.NewServer()
	t.Cleanup(etcd.Stop)
	go func() { _ = etcd.Serve(listener) }()
	proxy, err := newEtcdProxy("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	go proxy.run(t.Context())
	client, err := grpc.NewClient(proxy.listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	anything := status.New(codes.OK, "").Proto()
	for range 2000 {
		err := client.Invoke(t.Context(), "/etcdserverpb.KV/Range", anything, anything)
		if got := status.Code(err); got != codes.Unimplemented {
			t.Fatalf("error %v, want one with code %s", err, codes.Unimplemented)
		}
	}
}

// testEtcdHolds: of what happens while etcd's watches are held back, the second
// API server's watches know nothing, and its reads all.
func testEtcdHolds(t *testing.T, c *Cluster) {
	direct, late := clientFor(t, c.ServerConfig(0)), clientFor(t, c.ServerConfig(1))
	maps := late.CoreV1().ConfigMaps("default")
	before, err := maps.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Stop)
	secrets, err := late.CoreV1().Secrets("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(secrets.Stop)
	eventually(t, "the watch cache to have what is stored", func() (bool, error) {
		cached, err := maps.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		return err == nil && len(cached.Items) == len(before.Items), err
	})

	c.EtcdProxy(1).Hold("", "configmaps")
	createConfigMap(t, direct, "unseen")
	_, err = direct.CoreV1().Secrets("default").Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "seen"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	arrive(t, secrets, "seen")
	if _, err := maps.Get(t.Context(), "unseen", metav1.GetOptions{}); err != nil {
		t.Errorf("a GET does not see what only watches may not show: %v", err)
	}
	old, err := maps.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil || len(old.Items) != len(before.Items) {
		t.Errorf("the watch cache has %d config maps (%v), want the %d from before", len(old.Items), err, len(before.Items))
	}
	// A watch that begins with all there is cannot be had: the API server gives up.
	if object, complete := begins(t, late); complete {
		t.Errorf("a watch begins with an incomplete state, said to be complete: %v", object)
	}
	nothing(t, opened)
	c.EtcdProxy(1).Release("", "configmaps")
	arrive(t, opened, "unseen")
	// The API server waits for 3 s at most, which may not be enough when it is busy.
	eventually(t, "a watch with initial events to be complete", func() (bool, error) {
		_, complete := begins(t, late)
		return complete, nil
	})
}

// begins reads the objects that a watch begins with. They are complete unless the
// watch ends before it says so.
func begins(t *testing.T, c kubernetes.Interface) (last any, complete bool) {
	t.Helper()
	w, err := c.CoreV1().ConfigMaps("default").Watch(t.Context(), watchList())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for {
		e := next(t, w)
		if e.Type == watch.Bookmark || e.Type == watch.Error {
			return e.Object, e.Type == watch.Bookmark
		}
	}
}
