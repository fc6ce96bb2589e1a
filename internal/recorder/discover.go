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

	"github.com/freshbind/freshbind/internal/checker"
)

// API tells which version of each resource is recorded.
type API map[checker.Resource]schema.GroupVersionResource

// startOrder lists Sandboxes last, see Recorder.run.
var startOrder = []checker.Resource{checker.Namespaces, checker.Nodes, checker.Templates, checker.Pools, checker.Claims, checker.Pods, checker.Sandboxes}

// versions of agent-sandbox's groups, the preferred one first: it is the one that v0.5 and later store.
var versions = []string{"v1beta1", "v1alpha1"}

var groups = map[string][]checker.Resource{
	"agents.x-k8s.io":            {checker.Sandboxes},
	"extensions.agents.x-k8s.io": {checker.Templates, checker.Pools, checker.Claims},
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
		checker.Pods:       {Version: "v1", Resource: string(checker.Pods)},
		checker.Namespaces: {Version: "v1", Resource: string(checker.Namespaces)},
		checker.Nodes:      {Version: "v1", Resource: string(checker.Nodes)},
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
func firstServed(ctx context.Context, client resourceLister, group string, resources []checker.Resource) (string, error) {
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

func servesAll(list *metav1.APIResourceList, resources []checker.Resource) bool {
	return !slices.ContainsFunc(resources, func(want checker.Resource) bool {
		return !slices.ContainsFunc(list.APIResources, func(have metav1.APIResource) bool { return have.Name == string(want) })
	})
}
