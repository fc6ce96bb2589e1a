package routers

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// apiServer answers an informer's list and watch of Pods when it is told to.
type apiServer struct {
	kubernetes.Interface
	lists chan *corev1.PodList
	// stream is the watch that is open; nil for none.
	stream *watch.FakeWatcher
}

func newAPIServer() *apiServer { return &apiServer{lists: make(chan *corev1.PodList)} }

// IsWatchListSemanticsUnSupported has informers list before they watch.
func (*apiServer) IsWatchListSemanticsUnSupported() bool { return true }

func (s *apiServer) CoreV1() typedcorev1.CoreV1Interface { return core{server: s} }

type core struct {
	typedcorev1.CoreV1Interface
	server *apiServer
}

func (c core) Pods(string) typedcorev1.PodInterface { return podsOf{server: c.server} }

type podsOf struct {
	typedcorev1.PodInterface
	server *apiServer
}

func (p podsOf) List(ctx context.Context, _ metav1.ListOptions) (*corev1.PodList, error) {
	select {
	case list := <-p.server.lists:
		return list, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p podsOf) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	p.server.stream = watch.NewFake()
	return p.server.stream, nil
}

// expire ends the watch as an API server does that has forgotten the versions in
// between: the informer lists again.
func (s *apiServer) expire() {
	s.stream.Error(&metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version",
	})
	s.stream = nil
}
