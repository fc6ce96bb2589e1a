package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// loopback is the only address that anything here listens on.
const loopback = "127.0.0.1"

// certLifetime outlives any test. A program under test may have its clock stepped back
// by hours.
const (
	certLifetime = 10 * 24 * time.Hour
	clockSkew    = 24 * time.Hour
)

// authority signs the serving and the client certificates of one cluster.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// keyPair is a certificate and its key, PEM encoded.
type keyPair struct {
	cert, key []byte
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make CA key: %w", err)
	}
	template, err := certTemplate(pkix.Name{CommonName: "freshbind test cluster"})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make CA certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read back CA certificate: %w", err)
	}
	return &authority{cert: cert, key: key, pem: pemBlock("CERTIFICATE", der)}, nil
}

// client makes a client certificate; name and groups are what the API server
// takes as user and groups.
func (a *authority) client(name string, groups []string) (keyPair, error) {
	return a.sign(pkix.Name{CommonName: name, Organization: groups}, func(template *x509.Certificate) {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	})
}

// serving makes a certificate for servers on this machine.
func (a *authority) serving() (keyPair, error) {
	return a.sign(pkix.Name{CommonName: "localhost"}, func(template *x509.Certificate) {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		template.DNSNames = []string{"localhost", "kubernetes.default.svc"}
		template.IPAddresses = []net.IP{net.ParseIP(loopback)}
	})
}

func (a *authority) sign(name pkix.Name, change func(*x509.Certificate)) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("make key for %q: %w", name.CommonName, err)
	}
	template, err := certTemplate(name)
	if err != nil {
		return keyPair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("sign certificate for %q: %w", name.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{cert: pemBlock("CERTIFICATE", der), key: keyPEM}, nil
}

// certFiles are the files that the programs of a cluster read.
type certFiles struct {
	ca, servingCert, servingKey string
	// tokenKey signs and, as the API server derives the public half from it,
	// verifies service account tokens.
	tokenKey string
}

// write puts the cluster's certificates into dir.
func (a *authority) write(dir string) (certFiles, error) {
	serving, err := a.serving()
	if err != nil {
		return certFiles{}, err
	}
	token, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certFiles{}, fmt.Errorf("make token key: %w", err)
	}
	tokenPEM, err := encodeKey(token)
	if err != nil {
		return certFiles{}, err
	}
	files := certFiles{
		ca:          filepath.Join(dir, "ca.crt"),
		servingCert: filepath.Join(dir, "serving.crt"),
		servingKey:  filepath.Join(dir, "serving.key"),
		tokenKey:    filepath.Join(dir, "token.key"),
	}
	for path, content := range map[string][]byte{
		files.ca: a.pem, files.servingCert: serving.cert, files.servingKey: serving.key, files.tokenKey: tokenPEM,
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return certFiles{}, fmt.Errorf("write certificates: %w", err)
		}
	}
	return files, nil
}

func certTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(certLifetime),
	}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pemBlock("EC PRIVATE KEY", der), nil
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
