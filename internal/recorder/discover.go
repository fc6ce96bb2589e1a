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

// versions of a warm-pool system's groups, the preferred one first: of agent-sandbox it is the one that v0.5 and later store.
var versions = map[string][]string{
	checker.AgentSandbox: {"v1beta1", "v1alpha1"},
	checker.Kruise:       {"v1alpha1"},
}

// kindsOf are those of a warm-pool system, by group.
func kindsOf(platform string) map[string][]checker.Kind {
	out := map[string][]checker.Kind{}
	for _, k := range checker.Kinds() {
		if k.Platform == platform {
			out[k.Group] = append(out[k.Group], k)
		}
	}
	return out
}

// NotInstalledError says that the API server does not serve the resources of a warm-pool system.
type NotInstalledError struct {
	Host string
	// Platform was asked for; empty where any would do.
	Platform string
	Missing  []string // as resource.group
}

// Error names what was looked for, and what to do.
func (e *NotInstalledError) Error() string {
	product, others := checker.AgentSandbox, ""
	if e.Platform != "" {
		product = e.Platform
	} else {
		others = ", nor those of " + checker.Kruise
	}
	install := "agent-sandbox with its extensions"
	if product != checker.AgentSandbox {
		install = product
	}
	return fmt.Sprintf("%s's CRDs were not found%s: %s does not serve %s (looked for versions %s). Install %s, or choose the cluster that has it (--context)",
		product, others, e.Host, strings.Join(e.Missing, ", "), strings.Join(versions[product], ", "), install)
}

// resourceLister is the part of a discovery client that is needed.
type resourceLister interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// discover finds the platform that is asked for, or else the first that is served.
func discover(ctx context.Context, config *rest.Config, platform string) (name string, api API, err error) {
	wanted := checker.Platforms()
	if platform != "" {
		wanted = []string{platform}
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", nil, fmt.Errorf("create discovery client: %w", err)
	}
	var absent *NotInstalledError
	for _, name := range wanted {
		api := API{
			checker.Pods:       {Version: "v1", Resource: string(checker.Pods)},
			checker.Namespaces: {Version: "v1", Resource: string(checker.Namespaces)},
			checker.Nodes:      {Version: "v1", Resource: string(checker.Nodes)},
		}
		missing, err := api.find(ctx, client, name)
		if err != nil {
			return "", nil, err
		}
		if len(missing) == 0 {
			return name, api, nil
		}
		if absent == nil {
			absent = &NotInstalledError{Host: config.Host, Platform: platform, Missing: missing}
		}
	}
	return "", nil, absent
}

func (api API) find(ctx context.Context, client resourceLister, platform string) (missing []string, err error) {
	for group, kinds := range kindsOf(platform) {
		served, err := firstServed(ctx, client, group, versions[platform], kinds)
		if err != nil {
			return nil, err
		}
		for _, k := range kinds {
			if served == "" {
				missing = append(missing, k.Plural+"."+group)
				continue
			}
			api[k.Resource] = schema.GroupVersionResource{Group: group, Version: served, Resource: k.Plural}
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// firstServed returns the preferred version in which a group serves all of these kinds.
func firstServed(ctx context.Context, client resourceLister, group string, versions []string, kinds []checker.Kind) (string, error) {
	for _, version := range versions {
		list, err := client.ServerResourcesForGroupVersionWithContext(ctx, group+"/"+version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("look up resources of %s/%s: %w", group, version, err)
		}
		if servedAll(list, kinds) {
			return version, nil
		}
	}
	return "", nil
}

func servedAll(list *metav1.APIResourceList, kinds []checker.Kind) bool {
	return !slices.ContainsFunc(kinds, func(want checker.Kind) bool {
		return !slices.ContainsFunc(list.APIResources, func(have metav1.APIResource) bool { return have.Name == want.Plural })
	})
}
