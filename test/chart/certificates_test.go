package chart

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/test/scenario"
)

// otherCA is a CA of the user's, with an issuer of it.
const otherCA = `
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: other-ca, namespace: freshbind-system}
spec:
  isCA: true
  commonName: other-ca
  secretName: other-ca
  issuerRef: {name: freshbind-selfsigned, kind: Issuer}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: other, namespace: freshbind-system}
spec:
  ca: {secretName: other-ca}
`

// Everything that can happen to certificates, as docs/certificates.md says how,
// while binds go on and the replicas see new certificates late: after all of the others.
func TestRenewalsAndAChangeOfIssuerFailNoCall(t *testing.T) {
	w := sharedWorld(t)
	w.install(t)
	b := w.binds(t)
	before := w.uncompleted(t)
	lost := map[*replica]int{}
	for _, r := range w.replicas {
		lost[r] = w.kubelet.leasesLost(r)
	}
	for _, p := range w.proxies {
		p.Hold("", "secrets")
		t.Cleanup(func() { p.Release("", "secrets") })
	}
	for _, o := range decode(t, otherCA) {
		w.must(t, w.client.Create(t.Context(), o))
	}
	other := w.secretWith(t, "other-ca", func(map[string][]byte) bool { return true })
	first := w.secretWith(t, "freshbind-serving", func(map[string][]byte) bool { return true })
	b.during(t.Context(), func() {
		// The chart's CA, with the key that it has, then its leaf.
		ca := w.secretWith(t, "freshbind-ca", func(map[string][]byte) bool { return true })
		w.renew(t, "freshbind-ca")
		w.secretWith(t, "freshbind-ca", changed(ca, corev1.TLSCertKey))
		w.renew(t, "freshbind-serving")
		second := w.secretWith(t, "freshbind-serving", changed(first, corev1.TLSCertKey))
		w.trusted(t, second["ca.crt"])

		// Step one: both CAs are trusted. Step two: the other one issues.
		w.must(t, w.client.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: "trust", Namespace: namespace, Annotations: map[string]string{"cert-manager.io/allow-direct-injection": "true"},
			},
			Data: map[string][]byte{"ca.crt": append(bytes.Clone(second["ca.crt"]), other["ca.crt"]...)},
		}))
		w.upgrade(t, "certificates.certManager.trustSecret=trust")
		w.trusted(t, append(bytes.Clone(second["ca.crt"]), other["ca.crt"]...))
		w.upgrade(t, "certificates.certManager.trustSecret=trust", "certificates.certManager.issuerRef.name=other")
		third := w.secretWith(t, "freshbind-serving", func(data map[string][]byte) bool { return bytes.Equal(data["ca.crt"], other["ca.crt"]) })
		third = w.unseen(t, first, third, lost)
		for _, p := range w.proxies {
			p.Release("", "secrets")
		}
		w.serves(t, "the other CA's certificate", third[corev1.TLSCertKey])
		// Step three: the old one is trusted no longer.
		w.upgrade(t, "certificates.certManager.issuerRef.name=other")
		w.trusted(t, other["ca.crt"])
		for range bindRate {
			b.bind(t.Context())
		}
	})
	t.Logf("CA and leaf renewed, issuer changed, certificates seen late, at %d binds/s: %s; the API server counts %v calls that it could not complete",
		bindRate, b.result(), w.uncompleted(t)-before)
	if len(b.lost()) > 0 {
		t.Error("new certificates have lost calls")
	}
}

// renew asks cert-manager for a new certificate.
func (w *world) renew(t *testing.T, name string) {
	t.Helper()
	// cert-manager's controllers write the same conditions.
	w.must(t, retry.RetryOnConflict(scenario.Conflicts, func() error {
		certificate := &unstructured.Unstructured{}
		certificate.SetAPIVersion(certificateVersion)
		certificate.SetKind("Certificate")
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, certificate); err != nil {
			return err
		}
		return w.askForIssue(t.Context(), certificate, "renewed by a test")
	}))
}

// writeSecret changes what a Secret has, which Freshbind may be doing as well.
func (w *world) writeSecret(t *testing.T, name string, change func(data map[string][]byte)) {
	t.Helper()
	w.must(t, retry.RetryOnConflict(scenario.Conflicts, func() error {
		var secret corev1.Secret
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &secret); err != nil {
			return err
		}
		change(secret.Data)
		return w.client.Update(t.Context(), &secret)
	}))
}

// changed: the Secret's entry is another than before.
func changed(before map[string][]byte, key string) func(map[string][]byte) bool {
	return func(data map[string][]byte) bool { return !bytes.Equal(before[key], data[key]) }
}

// secretWith waits until a Secret has a certificate that will do.
func (w *world) secretWith(t *testing.T, name string, will func(map[string][]byte) bool) map[string][]byte {
	t.Helper()
	var secret corev1.Secret
	w.eventually(t, "a new certificate in Secret "+name, func(ctx context.Context) (string, bool) {
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret); err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%d keys", len(secret.Data)), len(secret.Data[corev1.TLSCertKey]) > 0 && will(secret.Data)
	})
	return secret.Data
}

// trusted waits until every webhook trusts these CAs. The injector keeps those
// that it had before, too.
func (w *world) trusted(t *testing.T, ca []byte) {
	t.Helper()
	w.eventually(t, "the CAs are injected", func(ctx context.Context) (string, bool) {
		var v admissionregistrationv1.ValidatingWebhookConfiguration
		var m admissionregistrationv1.MutatingWebhookConfiguration
		for _, o := range []client.Object{&v, &m} {
			if err := w.client.Get(ctx, client.ObjectKey{Name: release}, o); err != nil {
				return err.Error(), false
			}
		}
		for _, h := range v.Webhooks {
			if !trusts(h.ClientConfig.CABundle, ca) {
				return h.Name + " trusts others", false
			}
		}
		for _, h := range m.Webhooks {
			if !trusts(h.ClientConfig.CABundle, ca) {
				return h.Name + " trusts others", false
			}
		}
		return "", true
	})
}

// trusts: all of these CAs are in the bundle.
func trusts(bundle, ca []byte) bool {
	for block, rest := pem.Decode(ca); block != nil; block, rest = pem.Decode(rest) {
		if !bytes.Contains(bundle, pem.EncodeToMemory(block)) {
			return false
		}
	}
	return true
}

func (w *world) upgrade(t *testing.T, values ...string) {
	t.Helper()
	out, err := w.helm.run(t.Context(), append([]string{"upgrade", release, w.helm.chart, "--reset-values", "--wait", helmTimeout}, set(values...)...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// serves waits until all replicas show the leaf of a chain.
func (w *world) serves(t *testing.T, what string, chain []byte) {
	t.Helper()
	want := leaf(t, chain)
	for _, r := range w.replicas {
		w.eventually(t, r.address+" serves "+what, func(context.Context) (string, bool) {
			served, err := servedBy(r)
			if err != nil {
				return err.Error(), false
			}
			return "another", bytes.Equal(served, want)
		})
	}
}

// unseen returns what the serving certificate's Secret has, once no replica serves that:
// all serve the first certificate still, but those that have lost more leases than
// before. They were started again, and have read the newest: for them another is issued.
func (w *world) unseen(t *testing.T, first, secret map[string][]byte, lost map[*replica]int) map[string][]byte {
	t.Helper()
	for _, r := range w.replicas {
		again := false
		w.eventually(t, r.address+" serves still the first certificate", func(context.Context) (string, bool) {
			served, err := servedBy(r)
			if err != nil {
				return err.Error(), false
			}
			again = w.kubelet.leasesLost(r) > lost[r]
			return "another", again || bytes.Equal(served, leaf(t, first[corev1.TLSCertKey]))
		})
		if again {
			w.renew(t, "freshbind-serving")
			secret = w.secretWith(t, "freshbind-serving", changed(secret, corev1.TLSCertKey))
		}
	}
	return secret
}

// servedBy returns the certificate that a replica shows.
func servedBy(r *replica) ([]byte, error) {
	conn, err := tls.Dial("tcp", r.at(webhookPort), &tls.Config{InsecureSkipVerify: true}) // only asks what is served
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0].Raw, nil
}

func leaf(t *testing.T, chain []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(chain)
	if block == nil {
		t.Fatal("no certificate")
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		t.Fatal(err)
	}
	return block.Bytes
}

// Without cert-manager Freshbind makes CA and certificate itself, and renews both when
// they are due, while binds go on.
func TestFreshbindMakesAndRenewsItsCertificates(t *testing.T) {
	w := sharedWorld(t)
	w.install(t, set("certificates.source=Generated")...)
	b := w.binds(t)
	before := w.uncompleted(t)
	made := w.secretWith(t, "freshbind-generated", func(map[string][]byte) bool { return true })
	w.trusted(t, made["ca.crt"])
	b.during(t.Context(), func() {
		due := dueCA(t, made["ca.key"])
		w.writeSecret(t, "freshbind-generated", func(data map[string][]byte) { data["ca.crt"] = due })
		renewed := w.secretWith(t, "freshbind-generated", func(data map[string][]byte) bool {
			return !bytes.Equal(data["ca.crt"], due) && !bytes.Equal(data["ca.crt"], made["ca.crt"])
		})
		w.trusted(t, renewed["ca.crt"])
		if !bytes.Equal(renewed["ca.key"], made["ca.key"]) {
			t.Error("the CA has another key")
		}
		// A certificate that is not there is made anew, as one that is due is.
		w.writeSecret(t, "freshbind-generated", func(data map[string][]byte) { delete(data, corev1.TLSCertKey) })
		next := w.secretWith(t, "freshbind-generated", changed(renewed, corev1.TLSCertKey))
		w.serves(t, "the new certificate", next[corev1.TLSCertKey])
		for range bindRate {
			b.bind(t.Context())
		}
	})
	t.Logf("CA and leaf renewed by Freshbind at %d binds/s: %s; the API server counts %v calls that it could not complete",
		bindRate, b.result(), w.uncompleted(t)-before)
	if len(b.lost()) > 0 {
		t.Error("new certificates have lost calls")
	}
}

// dueCA is one that has lived for most of its life, with a key that is there.
func dueCA(t *testing.T, key []byte) []byte {
	t.Helper()
	parsed, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		t.Fatal("the CA's key cannot sign")
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "freshbind-ca", NotBefore: time.Now().AddDate(-30, 0, 0)}, signer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: ca.Raw})
}

// Without cert-manager: a Secret of one's own, with what signed it. In a namespace
// that takes restricted Pods only.
func TestASecretOfOnesOwn(t *testing.T) {
	w := sharedWorld(t)
	chain, key := ownCertificate(t, release+"."+namespace+".svc")
	bundle := filepath.Join(t.TempDir(), "ca.crt")
	w.must(t, os.WriteFile(bundle, lastCertificate(chain), 0o600))
	w.cleanNamespace(t)
	w.must(t, w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}))
	w.must(t, w.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "tls", Namespace: namespace}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key},
	}))
	w.installHere(t, append(set("certificates.source=Secret", "certificates.secret.name=tls"), "--set-file", "certificates.secret.caBundle="+bundle)...)
	b := w.binds(t)
	b.bind(t.Context())
	if len(b.lost()) > 0 {
		t.Errorf("%s", b.result())
	}
}

// ownCertificate is a certificate for a name, with the CA that signed it.
func ownCertificate(t *testing.T, name string) (chain, key []byte) {
	t.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return chain, key
}

// lastCertificate is the CA's: the chain ends with it.
func lastCertificate(chain []byte) []byte {
	var last []byte
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		last = pem.EncodeToMemory(block)
	}
	return last
}
