package upstream

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/test/controlplane"
)

// fieldManager owns what is installed here.
const fieldManager = "freshbind-test"

// roleFiles are where a release keeps its ClusterRoles.
var roleFiles = []string{"k8s/rbac.generated.yaml", "k8s/extensions-rbac.generated.yaml"}

// CRDs are those of a release, served in all its versions but without
// conversion between them.
func CRDs(ctx context.Context, version string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	r, err := find(version)
	if err != nil {
		return nil, err
	}
	files, err := r.glob(ctx, cmp.Or(r.crds, "helm/crds/*.yaml"))
	if err != nil {
		return nil, err
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read CRD of agent-sandbox %s: %w", version, err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			return nil, fmt.Errorf("decode %s: %w", file, err)
		}
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		crds = append(crds, crd)
	}
	return crds, nil
}

// InstallCRDs installs the CRDs of a release and nothing else.
func InstallCRDs(ctx context.Context, c *controlplane.Cluster, version string) error {
	crds, err := CRDs(ctx, version)
	if err != nil {
		return err
	}
	return c.InstallCRDs(ctx, crds...)
}

// install brings a release's objects into the cluster, all but its Deployment.
func install(ctx context.Context, c *controlplane.Cluster, r release) error {
	if err := InstallCRDs(ctx, c, r.version); err != nil {
		return err
	}
	objects := []*unstructured.Unstructured{
		object("v1", "Namespace", "", Namespace),
		object("v1", "ServiceAccount", Namespace, serviceAccount),
	}
	roles, err := r.roles(ctx)
	if err != nil {
		return err
	}
	for _, role := range roles {
		objects = append(objects, role, binding(role.GetName()))
	}
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	for _, o := range objects {
		if err := apply(ctx, client, o); err != nil {
			return err
		}
	}
	return nil
}

// roles reads the release's ClusterRoles.
func (r release) roles(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var roles []*unstructured.Unstructured
	for _, pattern := range roleFiles {
		files, err := r.glob(ctx, pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			read, err := readObjects(file)
			if err != nil {
				return nil, err
			}
			roles = append(roles, read...)
		}
	}
	return roles, nil
}

// glob finds files in the source of a release; none at all is an error.
func (r release) glob(ctx context.Context, pattern string) ([]string, error) {
	dir, err := r.moduleDir()
	if err != nil {
		return nil, err
	}
	source, err := controlplane.ModuleSource(ctx, dir, module)
	if err != nil {
		return nil, fmt.Errorf("find source of agent-sandbox %s: %w", r.version, err)
	}
	files, err := filepath.Glob(filepath.Join(source, pattern))
	if err == nil && len(files) == 0 {
		err = errors.New("no such file")
	}
	if err != nil {
		return nil, fmt.Errorf("find %s of agent-sandbox %s: %w", pattern, r.version, err)
	}
	return files, nil
}

// readObjects reads all YAML documents of a file.
func readObjects(file string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read objects: %w", err)
	}
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("split %s: %w", file, err)
		}
		read := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &read.Object); err != nil {
			return nil, fmt.Errorf("decode %s: %w", file, err)
		}
		if len(read.Object) > 0 {
			objects = append(objects, read)
		}
	}
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// binding gives upstream's service account the role, under the role's name, as
// its chart does.
func binding(role string) *unstructured.Unstructured {
	o := object(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding", "", role)
	o.Object["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role}
	o.Object["subjects"] = []any{
		map[string]any{"kind": rbacv1.ServiceAccountKind, "namespace": Namespace, "name": serviceAccount},
	}
	return o
}

// resources of the kinds that are installed.
var resources = map[string]schema.GroupVersionResource{
	"Namespace":          {Version: "v1", Resource: "namespaces"},
	"ServiceAccount":     {Version: "v1", Resource: "serviceaccounts"},
	"ClusterRole":        rbacv1.SchemeGroupVersion.WithResource("clusterroles"),
	"ClusterRoleBinding": rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"),
}

func apply(ctx context.Context, client dynamic.Interface, o *unstructured.Unstructured) error {
	resource, ok := resources[o.GetKind()]
	if !ok {
		return fmt.Errorf("install %s %s: not one of the kinds that are expected", o.GetKind(), o.GetName())
	}
	_, err := client.Resource(resource).Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o,
		metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("install %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}
