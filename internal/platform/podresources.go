package platform

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/resource"
)

// wholePodPaths are what the API server gave a Pod as a whole, which asks for some resources as a whole, for what its containers
// ask for together (KEP-2837; pkg/api/pod/util.go, DefaultPodLevelResources, v1.36 pkg/apis/core/v1/defaults.go).
func wholePodPaths(spec map[string]any) []string {
	if whole, _ := spec["resources"].(map[string]any); len(whole) == 0 {
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
		from := requests
		if _, asked := requests[name]; !asked || isHuge(name) {
			from = own.Limits
		}
		if holds(from, name, own.Requests[name]) {
			paths = append(paths, podSpecPath+"resources.requests["+Quoted(string(name))+"]")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own.Limits)) {
		is := own.Limits[name]
		limit, limited := limits[name]
		// A limit is never less than what the Pod requests. Of huge pages that would be a request which is there for the limit.
		if limited && (is.Cmp(limit) == 0 || is.Cmp(limit) > 0 && !isHuge(name) && holds(own.Requests, name, is)) {
			paths = append(paths, podSpecPath+"resources.limits["+Quoted(string(name))+"]")
		}
	}
	return paths
}

// isHuge: requests of huge pages follow from limits, whatever containers request.
func isHuge(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func holds(list corev1.ResourceList, name corev1.ResourceName, amount quantity.Quantity) bool {
	q, found := list[name]
	return found && q.Cmp(amount) == 0
}
