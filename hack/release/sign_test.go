package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
)

// newKey writes a private key: plain, or encrypted as cosign does it.
func newKey(t *testing.T, password string) (file string, public crypto.PublicKey) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	content, err := cryptoutils.MarshalPrivateKeyToPEM(private)
	if err != nil {
		t.Fatal(err)
	}
	if password != "" {
		der, err := cryptoutils.MarshalPrivateKeyToDER(private)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := encrypted.Encrypt(der, []byte(password))
		if err != nil {
			t.Fatal(err)
		}
		content = cryptoutils.PEMEncode(cryptoutils.EncryptedSigstorePrivateKeyPEMType, sealed)
	}
	file = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, private.Public()
}

func TestSignatures(t *testing.T) {
	for name, password := range map[string]string{"a plain key": "", "a key of cosign's": "secret"} {
		t.Run(name, func(t *testing.T) {
			key, public := newKey(t, password)
			t.Setenv(passwordVariable, password)
			m := newMaker(t, func(o *options) { o.key = key })
			for _, step := range []func() error{
				func() error { return m.image(t.Context()) },
				func() error { return m.plugins(t.Context()) },
				func() error { return m.checksums(t.Context()) },
				func() error { return m.sign(t.Context()) },
			} {
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
			verifier, err := signature.LoadVerifier(public, crypto.SHA256)
			if err != nil {
				t.Fatal(err)
			}
			signed, err := base64.StdEncoding.DecodeString(string(result(t, m, "SHA256SUMS.sig")))
			if err != nil {
				t.Fatal(err)
			}
			sums := result(t, m, "SHA256SUMS")
			if err := verifier.VerifySignature(bytes.NewReader(signed), bytes.NewReader(sums)); err != nil {
				t.Errorf("the checksums' signature: %v", err)
			}
			if err := verifier.VerifySignature(bytes.NewReader(signed), strings.NewReader(string(sums)+" ")); err == nil {
				t.Error("the signature is one of other checksums, too")
			}
			checkProvenance(t, m, verifier)
			published, err := cryptoutils.UnmarshalPEMToPublicKey(result(t, m, "freshbind-v1.2.3.pub"))
			if err != nil || !public.(*ecdsa.PublicKey).Equal(published) {
				t.Errorf("the public key is another: %v", err)
			}
		})
	}
}

func checkProvenance(t *testing.T, m *maker, verifier signature.Verifier) {
	t.Helper()
	envelope := result(t, m, "freshbind-v1.2.3.intoto.jsonl")
	if err := dsse.WrapVerifier(verifier).VerifySignature(bytes.NewReader(envelope), nil); err != nil {
		t.Errorf("the provenance's signature: %v", err)
	}
	var content struct{ PayloadType, Payload string }
	if err := json.Unmarshal(envelope, &content); err != nil {
		t.Fatal(err)
	}
	payload, err := base64.StdEncoding.DecodeString(content.Payload)
	if err != nil {
		t.Fatal(err)
	}
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				ResolvedDependencies []struct {
					URI    string
					Digest map[string]string
				}
			}
		}
	}
	if err := json.Unmarshal(payload, &statement); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range statement.Subject {
		got[s.Name] = s.Digest["sha256"]
	}
	want := map[string]string{"ghcr.io/freshbind/freshbind": m.digests["ghcr.io/freshbind/freshbind"].Hex}
	for _, file := range []string{
		"SHA256SUMS", "freshbind-v1.2.3-image.tar", "freshbind-v1.2.3.cdx.json", "kubectl-freshbind-v1.2.3-krew.yaml",
		"kubectl-freshbind-v1.2.3-linux-amd64.tar.gz", "kubectl-freshbind-v1.2.3-windows-amd64.tar.gz",
	} {
		if want[file], err = digest(filepath.Join(m.dist, file)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("subjects (-want,+got)\n%s", diff)
	}
	from := statement.Predicate.BuildDefinition.ResolvedDependencies
	if len(from) != 1 || from[0].Digest["gitCommit"] != m.commit {
		t.Errorf("built from %v, want commit %s", from, m.commit)
	}
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != provenanceV1 || content.PayloadType != statementType {
		t.Errorf("it is a %s of a %s about %s", content.PayloadType, statement.Type, statement.PredicateType)
	}
}

func TestKeysThatAreRefused(t *testing.T) {
	sealed, _ := newKey(t, "secret")
	garbage := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(garbage, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ key, password, want string }{
		"no file":          {filepath.Join(t.TempDir(), "none"), "", "reading -key"},
		"no key":           {garbage, "", "reading -key"},
		"another password": {sealed, "guess", "reading -key"},
		"no plugin":        {"nobodyskms://key", "", "KMS of -key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(passwordVariable, tc.password)
			if _, err := loadSigner(t.Context(), tc.key); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
	m := newMaker(t, nil)
	if err := m.sign(t.Context()); err != nil || len(m.made) != 0 {
		t.Errorf("without a key: %v, %v", m.made, err)
	}
}
