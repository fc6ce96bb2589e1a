package routeserver

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"testing"
)

func TestClientCertificates(t *testing.T) {
	gateway := &x509.Certificate{Subject: pkix.Name{CommonName: "gateway"}, DNSNames: []string{"gateway.example.com"}}
	verified := func(c *x509.Certificate) *tls.ConnectionState {
		return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}, VerifiedChains: [][]*x509.Certificate{{c}}}
	}
	for name, tc := range map[string]struct {
		state *tls.ConnectionState
		names []string
		want  bool
	}{
		"no TLS":                    {nil, nil, false},
		"no certificate":            {&tls.ConnectionState{}, nil, false},
		"one that nobody verified":  {&tls.ConnectionState{PeerCertificates: []*x509.Certificate{gateway}}, nil, false},
		"any":                       {verified(gateway), nil, true},
		"by its common name":        {verified(gateway), []string{"other", "gateway"}, true},
		"by its DNS name":           {verified(gateway), []string{"gateway.example.com"}, true},
		"verified, of another name": {verified(gateway), []string{"example.com"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&Clients{Names: tc.names}).accept(&http.Request{TLS: tc.state}); got != tc.want {
				t.Errorf("accepted: %t, want %t", got, tc.want)
			}
		})
	}
}
