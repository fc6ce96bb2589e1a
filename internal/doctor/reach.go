package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dialTimeout bounds a connection to a webhook at a URL.
const dialTimeout = 5 * time.Second

const repairCA = "have what keeps the CA put it in, cert-manager's cainjector or a running Freshbind with certificates.source=Generated, or set caBundle to the CA that signed the serving certificate"

// authorities looks at the CAs that the API server trusts for the webhooks.
func (d *Doctor) authorities(ctx context.Context) ([]Finding, error) {
	hooks, _, err := d.installed(ctx)
	if err != nil || len(hooks) == 0 {
		return nil, err
	}
	var out []Finding
	first := hooks[0].config.CABundle
	var soonest time.Time
	for _, h := range hooks {
		certs, err := parse(h.config.CABundle)
		switch {
		case len(h.config.CABundle) == 0:
			out = append(out, failed(repairCA, "webhook %s has an empty caBundle: the API server trusts no certificate of Freshbind's", h.name))
			continue
		case err != nil:
			out = append(out, failed(repairCA, "webhook %s has a caBundle that cannot be read: %v", h.name, err))
			continue
		}
		last := slices.MaxFunc(certs, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
		if d.Now().After(last.NotAfter) {
			out = append(out, failed("renew the CA", "webhook %s trusts a CA that expired at %s", h.name, last.NotAfter.Format(time.RFC3339)))
		}
		if soonest.IsZero() || last.NotAfter.Before(soonest) {
			soonest = last.NotAfter
		}
		if !bytes.Equal(h.config.CABundle, first) && len(first) > 0 {
			out = append(out, warning("check whether something injects the CA right now; that shows for a moment",
				"webhook %s has another caBundle than %s", h.name, hooks[0].name))
		}
	}
	if len(out) == 0 {
		return ok("all webhooks trust one CA, which expires at %s", soonest.Format(time.RFC3339)), nil
	}
	return out, nil
}

func parse(bundle []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		out = append(out, cert)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("it has no certificate")
	}
	return out, nil
}

// replicas looks whether somebody serves: ready is webhooks served and caches
// synced.
func (d *Doctor) replicas(ctx context.Context) ([]Finding, error) {
	hooks, _, err := d.installed(ctx)
	if err != nil || len(hooks) == 0 {
		return nil, err
	}
	var out []Finding
	seen := map[string]bool{}
	for _, h := range hooks {
		c := h.config
		if c.Service != nil {
			if key := c.Service.Namespace + "/" + c.Service.Name; !seen[key] {
				seen[key] = true
				f, err := d.endpoints(ctx, c.Service.Namespace, c.Service.Name)
				if err != nil {
					return out, err
				}
				out = append(out, f)
			}
			continue
		}
		at, err := url.Parse(ptr.Deref(c.URL, ""))
		if err != nil {
			out = append(out, failed(reinstall, "webhook %s has no URL that can be read: %v", h.name, err))
			continue
		}
		if key := at.Host; !seen[key] {
			seen[key] = true
			out = append(out, dial(ctx, at.Host, c.CABundle))
		}
	}
	return out, nil
}

func (d *Doctor) endpoints(ctx context.Context, namespace, service string) (Finding, error) {
	ready, all, err := Replicas(ctx, d.Client, namespace, service)
	if err != nil {
		return Finding{}, err
	}
	const look = "kubectl get pods, and their /readyz?verbose: caches, certificate, webhooks"
	switch {
	case ready == 0:
		return failed(look, "service %s/%s has %d replicas, none of them ready: binds wait", namespace, service, all), nil
	case ready < all || ready == 1:
		return warning(look, "service %s/%s has %d of %d replicas ready: with one less, binds wait", namespace, service, ready, all), nil
	}
	return ok("service %s/%s has %d of %d replicas ready", namespace, service, ready, all)[0], nil
}

// Replicas counts the replicas behind a Service, and those of them that are ready.
func Replicas(ctx context.Context, c client.Reader, namespace, service string) (ready, all int, err error) {
	var found discoveryv1.EndpointSliceList
	err = c.List(ctx, &found, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	if err != nil {
		return 0, 0, fmt.Errorf("listing endpoints of service %s/%s: %w", namespace, service, err)
	}
	for _, s := range found.Items {
		for _, e := range s.Endpoints {
			all++
			if ptr.Deref(e.Conditions.Ready, true) {
				ready++
			}
		}
	}
	return ready, all, nil
}

// dial connects as the API server does, from here.
func dial(ctx context.Context, host string, ca []byte) Finding {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialer := &tls.Dialer{NetDialer: &net.Dialer{}, Config: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(ctx, "tcp", host)
	switch {
	case err != nil && strings.Contains(err.Error(), "x509"):
		return failed(repairCA, "the webhooks at %s serve a certificate that their caBundle does not trust: %v", host, err)
	case err != nil:
		return failed("start Freshbind, or correct the URL", "nobody answers at %s: %v", host, err)
	}
	_ = conn.Close()
	return ok("the webhooks at %s answer with a certificate that their caBundle trusts", host)[0]
}
