package main

import (
	"bytes"
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	"github.com/sigstore/sigstore/pkg/signature/kms"
	signing "github.com/sigstore/sigstore/pkg/signature/options"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	home = "https://github.com/freshbind/freshbind"
	// statementType is how an envelope calls an in-toto statement.
	statementType = "application/vnd.in-toto+json"
	provenanceV1  = "https://slsa.dev/provenance/v1"
	// passwordVariable has the password of an encrypted key, as for cosign.
	passwordVariable = "COSIGN_PASSWORD"
)

// sign signs the checksums, and a statement of what was built from what. Whoever
// has the key's public half can check both with cosign.
func (m *maker) sign(ctx context.Context) error {
	if m.key == "" {
		return nil
	}
	signer, err := loadSigner(ctx, m.key)
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(m.dist, checksumsFile))
	if err != nil {
		return fmt.Errorf("reading what to sign: %w", err)
	}
	// Made before the checksums' own files are: these are not part of what they list.
	statement, err := m.statement()
	if err != nil {
		return err
	}
	signed, err := signer.SignMessage(bytes.NewReader(sums), signing.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("signing the checksums: %w", err)
	}
	envelope, err := dsse.WrapSigner(signer, statementType).SignMessage(bytes.NewReader(statement), signing.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("signing the provenance: %w", err)
	}
	public, err := signer.PublicKey(signing.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("reading the public key: %w", err)
	}
	publicPEM, err := cryptoutils.MarshalPublicKeyToPEM(public)
	if err != nil {
		return fmt.Errorf("writing the public key: %w", err)
	}
	return errors.Join(
		m.write(checksumsFile+".sig", []byte(base64.StdEncoding.EncodeToString(signed)+"\n")),
		m.write("freshbind-"+m.version+".intoto.jsonl", append(envelope, '\n')),
		m.write("freshbind-"+m.version+".pub", publicPEM),
	)
}

// loadSigner takes a PEM file, plain or as cosign encrypts it, or a key that a KMS
// keeps: SCHEME://… runs the plugin sigstore-kms-SCHEME.
func loadSigner(ctx context.Context, key string) (signature.Signer, error) {
	if strings.Contains(key, "://") {
		signer, err := kms.Get(ctx, key, crypto.SHA256)
		if err != nil {
			return nil, fmt.Errorf("asking the KMS of -key: %w", err)
		}
		return signer, nil
	}
	content, err := os.ReadFile(key)
	if err != nil {
		return nil, fmt.Errorf("reading -key: %w", err)
	}
	private, err := cryptoutils.UnmarshalPEMToPrivateKey(content, func(bool) ([]byte, error) {
		password, ok := os.LookupEnv(passwordVariable)
		if !ok {
			return nil, fmt.Errorf("the key is encrypted: set %s", passwordVariable)
		}
		return []byte(password), nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading -key: %w", err)
	}
	signer, err := signature.LoadSigner(private, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("reading -key: %w", err)
	}
	return signer, nil
}

// statement is an in-toto statement with SLSA provenance of all results.
func (m *maker) statement() ([]byte, error) {
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: provenanceV1}
	for _, file := range slices.Sorted(slices.Values(m.made)) {
		sum, err := digest(filepath.Join(m.dist, file))
		if err != nil {
			return nil, err
		}
		statement.Subject = append(statement.Subject, &intoto.ResourceDescriptor{Name: file, Digest: map[string]string{"sha256": sum}})
	}
	for _, name := range slices.Sorted(maps.Keys(m.digests)) {
		hash := m.digests[name]
		statement.Subject = append(statement.Subject, &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{hash.Algorithm: hash.Hex}})
	}
	predicate, err := m.provenance()
	if err != nil {
		return nil, err
	}
	statement.Predicate = predicate
	if err := statement.Validate(); err != nil {
		return nil, fmt.Errorf("making the provenance: %w", err)
	}
	return compact(protojson.Marshal(statement))
}

func (m *maker) provenance() (*structpb.Struct, error) {
	parameters, err := structpb.NewStruct(map[string]any{
		"version": m.version, "imagePlatforms": m.imageFor, "pluginPlatforms": m.pluginFor, "base": m.base, "caCertificates": m.certificates,
	})
	if err != nil {
		return nil, fmt.Errorf("making the provenance: %w", err)
	}
	text, err := compact(protojson.Marshal(&provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: home + "/blob/main/SECURITY.md#releases", ExternalParameters: parameters,
			ResolvedDependencies: []*intoto.ResourceDescriptor{
				{Uri: "git+" + home, Digest: map[string]string{"gitCommit": m.commit}},
			},
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: home + "/tree/main/hack/release"}},
	}))
	if err != nil {
		return nil, err
	}
	out := &structpb.Struct{}
	if err := protojson.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("making the provenance: %w", err)
	}
	return out, nil
}

// compact takes out the blanks that protojson puts in at random.
func compact(text []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, fmt.Errorf("making the provenance: %w", err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		return nil, fmt.Errorf("making the provenance: %w", err)
	}
	return out.Bytes(), nil
}
