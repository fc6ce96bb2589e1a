// Package servingcert serves TLS with a certificate that is read from a Secret
// through the API: a Secret that is mounted is handed on by the kubelet 30 to 100
// seconds late, which is too late for a CA that is replaced.
package servingcert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// Source has the newest usable certificate of one Secret. It watches nothing but
// that Secret: get, list and watch of that name are enough.
type Source struct {
	client kubernetes.Interface
	secret types.NamespacedName
	clock  clock.PassiveClock
	expiry prometheus.Gauge

	current atomic.Pointer[tls.Certificate]
}

// New returns a source without a certificate; Start finds one.
func New(client kubernetes.Interface, secret types.NamespacedName, reg prometheus.Registerer, c clock.PassiveClock) *Source {
	s := &Source{client: client, secret: secret, clock: c, expiry: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "freshbind_serving_certificate_not_after_timestamp_seconds",
		Help: "When the serving certificate that is in use expires, in seconds since the epoch; 0 before there is one.",
	})}
	reg.MustRegister(s.expiry)
	return s
}

// NeedLeaderElection is false: every replica serves.
func (*Source) NeedLeaderElection() bool { return false }

// Start follows the Secret until ctx ends.
func (s *Source) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("serving-certificate").WithValues("secret", s.secret)
	log.Info("Waiting for the serving certificate")
	informer := coreinformers.NewFilteredSecretInformer(s.client, s.secret.Namespace, 0, nil, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.secret.Name).String()
	})
	take := func(obj any) {
		secret, ok := obj.(*corev1.Secret)
		if !ok || secret.Name != s.secret.Name {
			return
		}
		switch leaf, err := s.take(secret); {
		case err != nil:
			log.Error(err, "Cannot use the certificate of the Secret", "inUse", s.current.Load() != nil)
		case leaf != nil:
			log.Info("Serving with another certificate", "serial", leaf.SerialNumber.String(), "notAfter", leaf.NotAfter)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: take, UpdateFunc: func(_, obj any) { take(obj) },
		DeleteFunc: func(any) {
			log.Info("The Secret was deleted", "inUse", s.current.Load() != nil)
		},
	})
	if err != nil {
		return fmt.Errorf("following the secret of the serving certificate: %w", err)
	}
	informer.RunWithContext(ctx)
	return nil
}

// take puts a certificate to use and returns its leaf, nil when it is in use
// already. What cannot be used changes nothing, and the error holds nothing of
// the key.
func (s *Source) take(secret *corev1.Secret) (*x509.Certificate, error) {
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(secret.Data[key]) == 0 {
			return nil, fmt.Errorf("reading the secret: %s is missing or empty", key)
		}
	}
	next, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("reading tls.crt and tls.key: %w", err)
	}
	now, before := s.clock.Now(), s.current.Load()
	if before != nil {
		if slices.EqualFunc(before.Certificate, next.Certificate, bytes.Equal) {
			return nil, nil
		}
		if now.After(next.Leaf.NotAfter) && now.Before(before.Leaf.NotAfter) {
			return nil, fmt.Errorf("it expired at %s", next.Leaf.NotAfter)
		}
	}
	s.current.Store(&next)
	s.expiry.Set(float64(next.Leaf.NotAfter.Unix()))
	return next.Leaf, nil
}

// GetCertificate is for tls.Config.
func (s *Source) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.current.Load(); c != nil {
		return c, nil
	}
	return nil, s.missing()
}

// Ready is a check: an error until there is a certificate.
func (s *Source) Ready(*http.Request) error {
	if s.current.Load() == nil {
		return s.missing()
	}
	return nil
}

func (s *Source) missing() error {
	return errors.New("there is no serving certificate yet: waiting for tls.crt and tls.key in the Secret " + s.secret.String())
}
