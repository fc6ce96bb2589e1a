package chart

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/test/controlplane"
)

const (
	certManagerModule  = "github.com/cert-manager/cert-manager"
	certManagerProgram = "github.com/freshbind/freshbind/test/chart/certmanager"
)

func certManagerDir() (string, error) {
	root, err := controlplane.RepositoryDir()
	return filepath.Join(root, "test", "chart", "certmanager"), err
}

// certManagerCRDs are those of the pinned cert-manager.
func certManagerCRDs(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	dir, err := certManagerDir()
	if err != nil {
		return nil, err
	}
	source, err := controlplane.ModuleSource(ctx, dir, certManagerModule)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(source, "deploy", "crds", "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("look for cert-manager's CRDs: %w", err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		// ACME's need half a second each to be served, and nobody uses them here.
		if strings.HasPrefix(filepath.Base(file), "acme.") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read CRD of cert-manager: %w", err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, crd); err != nil {
			return nil, fmt.Errorf("decode %s: %w", file, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// BuildCertManager returns the path of cert-manager's controllers, built as
// controlplane.BuildTool does.
func BuildCertManager(ctx context.Context, log io.Writer) (string, error) {
	dir, err := certManagerDir()
	if err != nil {
		return "", err
	}
	return controlplane.BuildTool(ctx, log, dir, certManagerProgram)
}

// startCertManager runs cert-manager's controllers in a cluster that has its
// CRDs. They end with the cluster.
func startCertManager(ctx context.Context, c *controlplane.Cluster) error {
	program, err := BuildCertManager(ctx, os.Stderr)
	if err != nil {
		return err
	}
	_, err = c.Run("cert-manager", program, "--kubeconfig="+c.KubeconfigPath())
	return err
}
