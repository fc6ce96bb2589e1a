// Package selfcert makes the serving certificate, and the CA that signs it, where
// nobody else does: it keeps them in a Secret, and what the API server trusts in
// the webhook configurations.
package selfcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// CACertKey is that of the CA in the Secret, beside tls.crt
	// and tls.key.
	CACertKey = "ca.crt"
	// CAPrivateKeyKey is that of its key.
	CAPrivateKeyKey = "ca.key"

	// leafLife is how long a serving certificate is valid. The CA's own life is that of
	// client-go, ten years.
	leafLife = 90 * 24 * time.Hour
	// backdated is how far clocks of API servers may be behind.
	backdated = time.Hour
	commonCA  = "freshbind-ca"
)

// issue returns what the Secret has to hold, which is what it holds until two thirds
// of a life are over. The CA keeps its key: what it signed before stays trusted by
// who knows the new CA, and what it signs now by who knows the old one, so that
// nobody has to wait for anybody. renewed says what is new, in words.
func issue(stored map[string][]byte, names []string, now time.Time) (data map[string][]byte, renewed []string, err error) {
	ca, key, renewCA := authority(stored, now)
	if key == nil {
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, nil, fmt.Errorf("making the key of the CA: %w", err)
		}
	}
	data = map[string][]byte{
		CACertKey: stored[CACertKey], CAPrivateKeyKey: stored[CAPrivateKeyKey],
		corev1.TLSCertKey: stored[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: stored[corev1.TLSPrivateKeyKey],
	}
	if renewCA {
		if ca, err = cert.NewSelfSignedCACert(cert.Config{CommonName: commonCA, NotBefore: now.Add(-backdated)}, key); err != nil {
			return nil, nil, fmt.Errorf("making the CA: %w", err)
		}
		if data[CAPrivateKeyKey], err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
			return nil, nil, fmt.Errorf("encoding the key of the CA: %w", err)
		}
		data[CACertKey] = encode(ca.Raw)
		renewed = append(renewed, "CA")
	}
	if !serves(stored, ca, names, now) {
		if data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey], err = sign(ca, key, names, now); err != nil {
			return nil, nil, err
		}
		renewed = append(renewed, "serving certificate")
	}
	return data, renewed, nil
}

// authority reads the stored CA: its key as long as it can be read, and whether the
// certificate has to be made anew.
func authority(stored map[string][]byte, now time.Time) (*x509.Certificate, crypto.Signer, bool) {
	parsed, err := keyutil.ParsePrivateKeyPEM(stored[CAPrivateKeyKey])
	key, is := parsed.(crypto.Signer)
	if err != nil || !is {
		return nil, nil, true
	}
	certs, err := cert.ParseCertsPEM(stored[CACertKey])
	if err != nil || !certs[0].IsCA || !samePublicKey(certs[0], key) {
		return nil, key, true
	}
	return certs[0], key, due(certs[0], now)
}

func samePublicKey(c *x509.Certificate, key crypto.Signer) bool {
	public, is := c.PublicKey.(interface{ Equal(x crypto.PublicKey) bool })
	return is && public.Equal(key.Public())
}

// due: two thirds of a certificate's life are over, or it has not begun.
func due(c *x509.Certificate, now time.Time) bool {
	return now.Before(c.NotBefore) || now.After(c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore)*2/3))
}

// serves reports whether the stored serving certificate will do: signed by the CA's
// key, for these names, and not due.
func serves(stored map[string][]byte, ca *x509.Certificate, names []string, now time.Time) bool {
	pair, err := tls.X509KeyPair(stored[corev1.TLSCertKey], stored[corev1.TLSPrivateKeyKey])
	return err == nil && pair.Leaf.CheckSignatureFrom(ca) == nil && slices.Equal(pair.Leaf.DNSNames, names) && !due(pair.Leaf, now)
}

// sign makes a serving certificate and its key.
func sign(ca *x509.Certificate, by crypto.Signer, names []string, now time.Time) (certificate, private []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the key of the serving certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("making a serial number: %w", err)
	}
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "freshbind"}, DNSNames: names,
		NotBefore: now.Add(-backdated), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca, key.Public(), by)
	if err != nil {
		return nil, nil, fmt.Errorf("signing the serving certificate: %w", err)
	}
	if private, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, nil, fmt.Errorf("encoding the key of the serving certificate: %w", err)
	}
	return encode(raw), private, nil
}

func encode(raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw})
}
