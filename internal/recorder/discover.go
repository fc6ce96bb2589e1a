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

// The names of warm-pool systems that can be recorded.
const (
	AgentSandbox = "agent-sandbox"
	Kruise       = "openkruise-agents"
)

// Platforms are the warm-pool systems that can be recorded. Where several are served and none is asked for, it is the first.
func Platforms() []string { return []string{AgentSandbox, Kruise} }

// system is a warm-pool system.
type system struct {
	// versions of its groups, the preferred one first: of agent-sandbox it is the one that v0.5 and later store.
	versions []string
	groups   map[string][]checker.Resource
	// plurals are those resources that the judgement calls by another system's name.
	plurals map[checker.Resource]string
}

var systems = map[string]system{
	AgentSandbox: {
		versions: []string{"v1beta1", "v1alpha1"},
		groups: map[string][]checker.Resource{
			"agents.x-k8s.io":            {checker.Sandboxes},
			"extensions.agents.x-k8s.io": {checker.Templates, checker.Pools, checker.Claims},
		},
	},
	Kruise: {
		versions: []string{"v1alpha1"},
		groups:   map[string][]checker.Resource{"agents.kruise.io": {checker.Sandboxes, checker.Templates, checker.Pools, checker.Claims}},
		plurals:  map[checker.Resource]string{checker.Pools: "sandboxsets"},
	},
}

func (s system) plural(r checker.Resource) string {
	if name := s.plurals[r]; name != "" {
		return name
	}
	return string(r)
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
	product, others := AgentSandbox, ""
	if e.Platform != "" {
		product = e.Platform
	} else {
		others = ", nor those of " + Kruise
	}
	install := "agent-sandbox with its extensions"
	if product != AgentSandbox {
		install = product
	}
	return fmt.Sprintf("%s's CRDs were not found%s: %s does not serve %s (looked for versions %s). Install %s, or choose the cluster that has it (--context)",
		product, others, e.Host, strings.Join(e.Missing, ", "), strings.Join(systems[product].versions, ", "), install)
}

// resourceLister is the part of a discovery client that is needed.
type resourceLister interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// discover finds the platform that is asked for, or else the first that is served.
func discover(ctx context.Context, config *rest.Config, platform string) (name string, api API, err error) {
	wanted := Platforms()
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
		missing, err := api.find(ctx, client, systems[name])
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

func (api API) find(ctx context.Context, client resourceLister, of system) (missing []string, err error) {
	for group, resources := range of.groups {
		served, err := of.firstServed(ctx, client, group)
		if err != nil {
			return nil, err
		}
		for _, resource := range resources {
			if served == "" {
				missing = append(missing, of.plural(resource)+"."+group)
				continue
			}
			api[resource] = schema.GroupVersionResource{Group: group, Version: served, Resource: of.plural(resource)}
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// firstServed returns the preferred version in which a group serves all of its resources.
func (s system) firstServed(ctx context.Context, client resourceLister, group string) (string, error) {
	for _, version := range s.versions {
		list, err := client.ServerResourcesForGroupVersionWithContext(ctx, group+"/"+version)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("look up resources of %s/%s: %w", group, version, err)
		}
		if s.servedAll(list, s.groups[group]) {
			return version, nil
		}
	}
	return "", nil
}

func (s system) servedAll(list *metav1.APIResourceList, resources []checker.Resource) bool {
	return !slices.ContainsFunc(resources, func(want checker.Resource) bool {
		return !slices.ContainsFunc(list.APIResources, func(have metav1.APIResource) bool { return have.Name == s.plural(want) })
	})
}
