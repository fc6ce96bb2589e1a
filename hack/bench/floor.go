package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/upstream"
)

// floor serves the least that a webhook can be: one that answers, one that reads one
// object first, and one that reads the six that Freshbind reads, all at once.
type floor struct {
	kube   kubernetes.Interface
	reads  dynamic.Interface
	url    string
	ca     []byte
	server *http.Server
	// asked has a value for each call, as long as somebody takes them.
	asked chan string
}

func serveFloor(ctx context.Context, cluster *rest.Config) (*floor, error) {
	cfg := rest.CopyConfig(cluster)
	cfg.QPS = -1
	f := &floor{asked: make(chan string)}
	var err error
	if f.kube, err = kubernetes.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	if f.reads, err = dynamic.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	f.url, f.ca = "https://"+listener.Addr().String(), certificate
	f.server = &http.Server{
		Handler: f, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}
	go func() { _ = f.server.ServeTLS(listener, "", "") }()
	return f, nil
}

func (f *floor) stop() { _ = f.server.Close() }

// path is where a side is answered; "" for those that are not answered here.
func (f *floor) path(side string) string {
	switch side {
	case sideNoOp, sideOneGet, sideSixGets:
		return "/" + side
	}
	return ""
}

// ServeHTTP allows everything.
func (f *floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	side := strings.TrimPrefix(r.URL.Path, "/")
	select {
	case f.asked <- side:
	default:
	}
	var review admissionv1.AdmissionReview
	err := json.NewDecoder(r.Body).Decode(&review)
	if err == nil && review.Request == nil {
		err = errors.New("there is no request")
	}
	if err == nil {
		err = f.read(r.Context(), side, review.Request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// read reads what a side reads: the template, and whatever else is about one bind. What the
// claim would have from a cold start is not there.
func (f *floor) read(ctx context.Context, side string, bind *admissionv1.AdmissionRequest) error {
	g, ctx := errgroup.WithContext(ctx)
	get := func(gvr schema.GroupVersionResource, namespace, name string) {
		g.Go(func() error {
			_, err := f.reads.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
			if gvr.Resource == upstream.Sandboxes.Resource {
				return client.IgnoreNotFound(err)
			}
			return err
		})
	}
	if side != sideNoOp {
		get(upstream.SandboxTemplates.WithVersion(builders.V1Beta1), bind.Namespace, crowdTemplate)
	}
	if side == sideSixGets {
		get(upstream.SandboxWarmPools.WithVersion(builders.V1Beta1), bind.Namespace, crowdPool)
		get(upstream.SandboxClaims.WithVersion(builders.V1Beta1), bind.Namespace, claimOf(bind.Name))
		get(upstream.Sandboxes.WithVersion(builders.V1Beta1), bind.Namespace, claimOf(bind.Name))
		get(podResource, bind.Namespace, bind.Name)
		get(nodeResource, "", crowdNode)
	}
	return g.Wait()
}

// install has the API server ask about binds of one side, and waits until it does.
func (f *floor) install(ctx context.Context, side string, b *binder) error {
	hook := admissionregistrationv1.ValidatingWebhook{
		Name: side + ".bench.freshbind.dev", AdmissionReviewVersions: []string{"v1"},
		SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), FailurePolicy: ptr.To(admissionregistrationv1.Fail),
		ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: ptr.To(f.url + f.path(side)), CABundle: f.ca},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespaceOf(side)}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{upstream.Sandboxes.Group}, APIVersions: []string{"*"}, Resources: []string{upstream.Sandboxes.Resource},
			},
		}},
	}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: hook.Name}, Webhooks: []admissionregistrationv1.ValidatingWebhook{hook},
	}
	_, err := f.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, configuration, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create webhook: %w", err)
	}
	waiting, done := context.WithTimeout(ctx, guardWithin)
	defer done()
	in := make(chan error, 1)
	go func() {
		in <- wait.PollUntilContextCancel(waiting, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			_, err := b.bind(ctx, 0)
			return false, err
		})
	}()
	select {
	case <-f.asked:
		done()
		// It was told to end.
		if err := <-in; ctx.Err() != nil {
			return err
		}
		return nil
	case err := <-in:
		return fmt.Errorf("wait until the webhook is asked: %w", err)
	}
}
