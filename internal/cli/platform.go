package cli

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// Objects reads what a platform's objects say.
type Objects interface {
	platform.Catalog
	platform.Owners
	platform.Selectors
	platform.Metadata
	platform.Pools
	platform.Renderer
	platform.Describer
	platform.Visibility
	Claims
	Restorer
}

// Restorer goes back to earlier revisions.
type Restorer interface {
	// Restore puts into a template what an earlier revision of it had members built from,
	// and leaves what else it says.
	Restore(template, earlier *unstructured.Unstructured) error
}

// Claims reads claims.
type Claims interface {
	// Asked returns the pool and the template that a claim asks for itself; "" for what
	// it leaves open.
	Asked(claim *unstructured.Unstructured) (pool, template string)
	// Holdings are the names under which it may have a sandbox.
	Holdings(claim *unstructured.Unstructured) []string
	// Held selects sandboxes that may be its besides; nil where it names all it has.
	Held(claim *unstructured.Unstructured) labels.Selector
	// LaunchType says how it came by its sandbox, "warm" or "cold".
	LaunchType(sandbox, claim *unstructured.Unstructured) string
}

// Judging reads what verdicts depend on, and judges as admission does.
type Judging interface {
	Get(ctx context.Context, gr schema.GroupResource, namespace, name string) (*unstructured.Unstructured, error)
	platform.Inspector
	Attributing
}

// Attributing finds what sandboxes and Pods depend on, and are built from.
type Attributing interface {
	Snapshot(ctx context.Context, w platform.Write) (platform.Facts, error)
	SandboxRevision(ctx context.Context, sandbox *unstructured.Unstructured) (platform.Stamp, error)
	PodRevision(ctx context.Context, pod *unstructured.Unstructured) (platform.Stamp, error)
}

// Sources are what a platform judges by. Reader and Resolver are nil where it reads
// nothing.
type Sources struct {
	Reader   platform.Reader
	Resolver platform.Resolver
	// ByUID reads an object whose UID the Ref names in place of a name.
	ByUID    platform.Reader
	History  platform.History
	Defaults settings.Defaults
	// Namespaces are asked instead of Reader for the labels of namespaces, unless nil.
	Namespaces platform.NamespaceLabels
}

// podResource is what Pods are read as.
var podResource = schema.GroupResource{Resource: "pods"}
