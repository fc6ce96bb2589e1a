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

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/upstream"
)

// floor serves the least that a webhook can be: one that answers, and one that reads
// one object first.
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
	if side == sideNoOp || side == sideOneGet {
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
	if err == nil && side == sideOneGet {
		templates := f.reads.Resource(upstream.SandboxTemplates.WithVersion(builders.V1Beta1)).Namespace(review.Request.Namespace)
		_, err = templates.Get(r.Context(), crowdTemplate, metav1.GetOptions{})
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

// install has the API server ask about binds of one side, and waits until it does.
func (f *floor) install(ctx context.Context, side string, bind func(context.Context) (time.Duration, error)) error {
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
			_, err := bind(ctx)
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
