package platform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/fields"
)

const (
	// limitRangerKey is the annotation in which the API server says which resources
	// it set (plugin/pkg/admission/limitranger).
	limitRangerKey = "kubernetes.io/limit-ranger"
	// maxLimitRanger bounds what is read of it: some 50 containers' worth.
	maxLimitRanger = 4 << 10
	// maxAdmitted bounds the paths: a Pod that has more of them is compared without.
	maxAdmitted = 1024
	podSpecPath = "podTemplate.spec."
)

// admitted are the paths of what the API server added to this very Pod, as far as
// the Pod itself tells. They allow what is added, never another value.
//
//   - Where a Pod runs: RuntimeClasses (gVisor, Kata) add nodeSelector and
//     tolerations, and so does whoever holds a Pod back by a scheduling gate, which
//     is the only time at which the API server lets anybody add a nodeSelector.
//   - Tolerations of the extended resources that it asks for.
//   - Requests for which it has a limit of the same value, what a LimitRange
//     gave it, and what it has as a whole for its containers.
//   - Host ports, where it is in its node's network.
//   - AppArmor profiles that its annotations name (pkg/registry/core/pod/strategy.go).
//   - What the keys of matchLabelKeys and mismatchLabelKeys come to in the selectors
//     beside them (pkg/registry/core/pod/strategy.go).
func admitted(pod *unstructured.Unstructured) []string {
	spec, _ := pod.Object["spec"].(map[string]any)
	var paths []string
	gated := pod.GetGeneration() > 1
	if gated || fields.String(spec, "runtimeClassName") != "" {
		paths = append(paths, podSpecPath+"nodeSelector", podSpecPath+"tolerations[*]")
	}
	if gated {
		paths = append(paths, podSpecPath+"affinity.nodeAffinity")
	}
	paths = append(paths, selectorPaths(spec)...)
	paths = append(paths, wholePodPaths(spec)...)
	annotations := pod.GetAnnotations()
	for _, key := range []string{"containers", "initContainers"} {
		for _, c := range fields.Objects(spec, key) {
			name := fields.String(c, "name")
			container := podSpecPath + key + "[name=" + Quoted(name) + "]."
			paths = append(paths, resourcePaths(container, c)...)
			paths = append(paths, appArmorPaths(container, annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+name])...)
			if spec["hostNetwork"] == true {
				paths = append(paths, hostPorts(container, c)...)
			}
			if len(paths) > maxAdmitted {
				return nil
			}
		}
	}
	return append(paths, limitRanged(annotations[limitRangerKey])...)
}

// Quoted is a value of a predicate in a path.
func Quoted(s string) string {
	out, err := json.Marshal(s)
	if err != nil {
		panic("marshalling a string: " + err.Error())
	}
	return string(out)
}

func resourcePaths(container string, c map[string]any) []string {
	requests, _, _ := unstructured.NestedMap(c, "resources", "requests")
	limits, _, _ := unstructured.NestedMap(c, "resources", "limits")
	var paths []string
	for name, request := range requests {
		if isExtended(name) {
			paths = append(paths, podSpecPath+"tolerations[key="+Quoted(name)+"]")
		}
		if limit, limited := limits[name]; limited && sameQuantity(request, limit) {
			paths = append(paths, container+"resources.requests["+Quoted(name)+"]")
		}
	}
	slices.Sort(paths)
	return paths
}

// isExtended: a resource of somebody else's domain
// (k8s.io/kubernetes/pkg/apis/core/helper, IsExtendedResourceName).
func isExtended(resource string) bool {
	domain, _, qualified := strings.Cut(resource, "/")
	return qualified && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io") && !strings.HasPrefix(resource, "requests.")
}

func sameQuantity(a, b any) bool {
	qa, errA := resource.ParseQuantity(fmt.Sprint(a))
	qb, errB := resource.ParseQuantity(fmt.Sprint(b))
	return errA == nil && errB == nil && qa.Cmp(qb) == 0
}

func hostPorts(container string, c map[string]any) []string {
	var paths []string
	for _, port := range fields.Objects(c, "ports") {
		if n, found, _ := unstructured.NestedInt64(port, "containerPort"); found {
			paths = append(paths, fmt.Sprintf("%sports[containerPort=%d].hostPort=%d", container, n, n))
		}
	}
	return paths
}

func appArmorPaths(container, annotation string) []string {
	profile := container + "securityContext.appArmorProfile."
	local, isLocal := strings.CutPrefix(annotation, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
	switch {
	case annotation == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return []string{profile + "type=RuntimeDefault"}
	case annotation == corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return []string{profile + "type=Unconfined"}
	case isLocal:
		return []string{profile + "type=Localhost", profile + "localhostProfile=" + Quoted(local)}
	}
	return nil
}

func selectorPaths(spec map[string]any) []string {
	var paths []string
	add := func(at string, of map[string]any) {
		for _, list := range []string{"matchLabelKeys", "mismatchLabelKeys"} {
			keys, _, _ := unstructured.NestedStringSlice(of, list)
			for _, key := range keys {
				paths = append(paths, podSpecPath+at+".labelSelector.matchExpressions[key="+Quoted(key)+"]")
			}
		}
	}
	for _, constraint := range fields.Objects(spec, "topologySpreadConstraints") {
		add("topologySpreadConstraints[*]", constraint)
	}
	affinity, _ := spec["affinity"].(map[string]any)
	for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
		terms, _ := affinity[kind].(map[string]any)
		at := "affinity." + kind + "."
		for _, term := range fields.Objects(terms, "requiredDuringSchedulingIgnoredDuringExecution") {
			add(at+"requiredDuringSchedulingIgnoredDuringExecution[*]", term)
		}
		for _, weighted := range fields.Objects(terms, "preferredDuringSchedulingIgnoredDuringExecution") {
			term, _ := weighted["podAffinityTerm"].(map[string]any)
			add(at+"preferredDuringSchedulingIgnoredDuringExecution[*].podAffinityTerm", term)
		}
	}
	return paths
}

// limitRanged reads "LimitRanger plugin set: cpu, memory request for container c;
// cpu limit for init container i".
func limitRanged(annotation string) []string {
	if len(annotation) > maxLimitRanger {
		return nil
	}
	_, list, _ := strings.Cut(annotation, ": ")
	var paths []string
	for _, one := range strings.Split(list, "; ") {
		for _, kind := range []string{"request", "limit"} {
			names, container, found := strings.Cut(one, " "+kind+" for ")
			if !found {
				continue
			}
			key, name := "containers", strings.TrimPrefix(container, "container ")
			if init, isInit := strings.CutPrefix(container, "init container "); isInit {
				key, name = "initContainers", init
			}
			for _, resource := range strings.Split(names, ", ") {
				paths = append(paths, fmt.Sprintf("%s%s[name=%s].resources.%ss[%s]", podSpecPath, key, Quoted(name), kind, Quoted(resource)))
			}
		}
	}
	return paths
}
