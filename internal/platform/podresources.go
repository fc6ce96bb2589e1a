package platform

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/resource"
)

// wholePodPaths are what the API server gave a Pod as a whole, which asks for some resources as a whole, for what its containers
// ask for together (KEP-2837; pkg/api/pod/util.go, DefaultPodLevelResources, v1.36 pkg/apis/core/v1/defaults.go).
func wholePodPaths(spec map[string]any) []string {
	if whole, _, _ := unstructured.NestedMap(spec, "resources"); len(whole) == 0 {
		return nil
	}
	pod := &corev1.Pod{}
	asks := map[string]any{"containers": spec["containers"], "initContainers": spec["initContainers"], "resources": spec["resources"]}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(asks, &pod.Spec); err != nil {
		return nil
	}
	own, ofContainers := pod.Spec.Resources, resource.PodResourcesOptions{}
	requests, limits := resource.AggregateContainerRequests(pod, ofContainers), resource.AggregateContainerLimits(pod, ofContainers)
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(own.Requests)) {
		if is := own.Requests[name]; holds(requests, name, is) || holds(own.Limits, name, is) {
			paths = append(paths, podSpecPath+"resources.requests["+Quoted(string(name))+"]")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own.Limits)) {
		limit, limited := limits[name]
		// It is never less than what the Pod requests.
		if is := own.Limits[name]; limited && (is.Cmp(limit) == 0 || is.Cmp(limit) > 0 && holds(own.Requests, name, is)) {
			paths = append(paths, podSpecPath+"resources.limits["+Quoted(string(name))+"]")
		}
	}
	return paths
}

func holds(list corev1.ResourceList, name corev1.ResourceName, amount quantity.Quantity) bool {
	q, found := list[name]
	return found && q.Cmp(amount) == 0
}
