package selfcert

import (
	"crypto/x509"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
)

var names = []string{"freshbind.own.svc", "freshbind.own.svc.cluster.local"}

func first(t *testing.T, pem []byte) *x509.Certificate {
	t.Helper()
	certs, err := cert.ParseCertsPEM(pem)
	if err != nil {
		t.Fatal(err)
	}
	return certs[0]
}

// trusted reports whether who knows this CA trusts this serving certificate.
func trusted(t *testing.T, ca, leaf []byte, at time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(first(t, ca))
	_, err := first(t, leaf).Verify(x509.VerifyOptions{Roots: roots, DNSName: names[0], CurrentTime: at})
	return err
}

func TestIssue(t *testing.T) {
	now := time.Now()
	before, renewed, err := issue(nil, names, now)
	if err != nil || !slices.Equal(renewed, []string{"CA", "serving certificate"}) {
		t.Fatalf("of nothing came %v, %v", renewed, err)
	}
	other, _, err := issue(nil, names, now)
	if err != nil {
		t.Fatal(err)
	}
	with := func(key string, value []byte) map[string][]byte {
		out := maps.Clone(before)
		out[key] = value
		return out
	}
	foreign := with(corev1.TLSCertKey, other[corev1.TLSCertKey])
	foreign[corev1.TLSPrivateKeyKey] = other[corev1.TLSPrivateKeyKey]
	both, leaf := []string{"CA", "serving certificate"}, []string{"serving certificate"}
	for name, tc := range map[string]struct {
		stored map[string][]byte
		names  []string
		after  time.Duration
		want   []string
		// sameKey: what was signed before is trusted by who knows the CA of now, and
		// the other way round.
		sameKey bool
	}{
		"nothing is due":                    {before, names, time.Hour, nil, true},
		"two thirds of the leaf's life":     {before, names, leafLife * 2 / 3, leaf, true},
		"a little less":                     {before, names, leafLife*2/3 - 2*time.Hour, nil, true},
		"the leaf has expired":              {before, names, leafLife * 2, leaf, true},
		"two thirds of the CA's life":       {before, names, 7 * 365 * 24 * time.Hour, both, true},
		"another name":                      {before, names[:1], 0, leaf, true},
		"the leaf is of another CA":         {foreign, names, 0, leaf, true},
		"the leaf has another key":          {with(corev1.TLSPrivateKeyKey, other[corev1.TLSPrivateKeyKey]), names, 0, leaf, true},
		"no leaf":                           {with(corev1.TLSCertKey, nil), names, 0, leaf, true},
		"no CA, but its key":                {with(CACertKey, nil), names, 0, []string{"CA"}, true},
		"a CA of another key":               {with(CACertKey, other[CACertKey]), names, 0, []string{"CA"}, true},
		"a leaf in the place of the CA":     {with(CACertKey, before[corev1.TLSCertKey]), names, 0, []string{"CA"}, true},
		"no key of the CA":                  {with(CAPrivateKeyKey, nil), names, 0, both, false},
		"a key of the CA that is none":      {with(CAPrivateKeyKey, []byte("x")), names, 0, both, false},
		"clocks that are behind by an hour": {before, names, -backdated, nil, true},
		"a time before it was made":         {before, names, -backdated - time.Minute, both, true},
	} {
		t.Run(name, func(t *testing.T) {
			at := now.Add(tc.after)
			got, renewed, err := issue(tc.stored, tc.names, at)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, renewed); diff != "" {
				t.Errorf("renewed (-want,+got):\n%s", diff)
			}
			if err := trusted(t, got[CACertKey], got[corev1.TLSCertKey], at); err != nil {
				t.Errorf("the serving certificate is not trusted: %v", err)
			}
			if tc.after < leafLife && tc.after >= 0 && tc.sameKey {
				if err := trusted(t, got[CACertKey], before[corev1.TLSCertKey], at); err != nil {
					t.Errorf("what was signed before is not trusted: %v", err)
				}
			}
			if err := trusted(t, before[CACertKey], got[corev1.TLSCertKey], now.Add(max(tc.after, 0))); (err == nil) != tc.sameKey {
				t.Errorf("trusted by who knows the CA of before: %v, want %t", err, tc.sameKey)
			}
			if again, renewed, err := issue(got, tc.names, at); err != nil || len(renewed) > 0 || !maps.EqualFunc(got, again, slices.Equal) {
				t.Errorf("a second time %v is made, %v", renewed, err)
			}
		})
	}
}
