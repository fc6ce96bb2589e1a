package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

const namespace = "freshbind-system"

// chart packages the chart, and renders it for those who use no Helm.
func (m *maker) chart(ctx context.Context) error {
	source := filepath.Join(m.root, "charts", "freshbind")
	version := strings.TrimPrefix(m.version, "v")
	_, err := output(ctx, m.root, m.helm, "package", source, "--version", version, "--app-version", version, "--destination", m.dist)
	if err != nil {
		return err
	}
	m.made = append(m.made, "freshbind-"+version+".tgz")
	if err := m.chartLayout(filepath.Join(m.dist, "freshbind-"+version+".tgz")); err != nil {
		return err
	}
	// Rendered from the package, which has the versions. Without Helm a hook is an object
	// as any other: the one that runs before a delete would take Freshbind away at once.
	rendered, err := output(ctx, m.root, m.helm, "template", "freshbind", filepath.Join(m.dist, "freshbind-"+version+".tgz"),
		"--namespace", namespace, "--include-crds", "--skip-tests", "--no-hooks", "--api-versions", "cert-manager.io/v1/Certificate")
	if err != nil {
		return err
	}
	const head = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + namespace + "\n"
	if err := m.write("freshbind-"+m.version+".yaml", []byte(head+rendered+"\n")); err != nil {
		return err
	}
	return m.write("kustomization.yaml", fmt.Appendf(nil,
		"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [freshbind-%s.yaml]\n", m.version))
}
