package recorder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/audit"
)

// API tells which version of each resource is recorded.
type API map[audit.Resource]schema.GroupVersionResource

// startOrder lists Sandboxes last, see Recorder.run.
var startOrder = []audit.Resource{audit.Namespaces, audit.Nodes, audit.Templates, audit.Pools, audit.Claims, audit.Pods, audit.Sandboxes}

// versions of agent-sandbox's groups, the preferred one first: it is the one that v0.5 and later store.
var versions = []string{"v1beta1", "v1alpha1"}

var groups = map[string][]audit.Resource{
	"agents.x-k8s.io":            {audit.Sandboxes},
	"extensions.agents.x-k8s.io": {audit.Templates, audit.Pools, audit.Claims},
}

// NotInstalledError says that the API server does not serve agent-sandbox's resources.
type NotInstalledError struct {
	Host    string
	Missing []string // as resource.group
}

// Error names what was looked for, and what to do.
func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("agent-sandbox's CRDs were not found: %s does not serve %s (looked for versions %s). "+
		"Install agent-sandbox with its extensions, or choose the cluster that has it (--context)",
		e.Host, strings.Join(e.Missing, ", "), strings.Join(versions, ", "))
}

// resourceLister is the part of a discovery client that is needed.
type resourceLister interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

func discover(ctx context.Context, config *rest.Config) (API, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create discovery client: %w", err)
	}
	api := API{
		audit.Pods:       {Version: "v1", Resource: string(audit.Pods)},
		audit.Namespaces: {Version: "v1", Resource: string(audit.Namespaces)},
		audit.Nodes:      {Version: "v1", Resource: string(audit.Nodes)},
	}
	missing, err := api.find(ctx, client)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, &NotInstalledError{Host: config.Host, Missing: missing}
	}
	return api, nil
}

func (api API) find(ctx context.Context, client resourceLister) (missing []string, err error) {
	for group, resources := range groups {
		served, err := firstServed(ctx, client, group, resources)
		if err != nil {
			return nil, err
		}
		for _, resource := range resources {
			if served == "" {
				missing = append(missing, string(resource)+"."+group)
				continue
			}
			api[resource] = schema.GroupVersionResource{Group: group, Version: served, Resource: string(resource)}
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// firstServed returns the preferred version in which the group serves all of the resources.
func firstServed(ctx context.Context, client resourceLister, group string, resources []audit.Resource) (string, error) {
	for _, version := range versions {
		list, err := client.ServerResourcesForGroupVersionWithContext(ctx, group+"/"+version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("look up resources of %s/%s: %w", group, version, err)
		}
		if servesAll(list, resources) {
			return version, nil
		}
	}
	return "", nil
}

func servesAll(list *metav1.APIResourceList, resources []audit.Resource) bool {
	return !slices.ContainsFunc(resources, func(want audit.Resource) bool {
		return !slices.ContainsFunc(list.APIResources, func(have metav1.APIResource) bool { return have.Name == string(want) })
	})
}
