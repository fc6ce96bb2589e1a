package checker

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// podDefaults are those of the fields that a Pod always has (pkg/apis/core/v1/defaults.go, plugin/pkg/admission/serviceaccount).
var podDefaults = map[string]any{
	"dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "restartPolicy": "Always", "serviceAccountName": "default",
	"terminationGracePeriodSeconds": int64(30),
}

// undoAdmission takes out of a stored Pod what the API server wrote into it and a comparison by fields would not understand:
// defaults of fields that every Pod has; the policy Always for all images, in the place of any other
// (plugin/pkg/admission/alwayspullimages); the AppArmor profiles of these containers, which annotations name
// (pkg/registry/core/pod/strategy.go).
func undoAdmission(have, want map[string]any, appArmor []string) {
	for key, value := range podDefaults {
		if _, asked := want[key]; !asked && have[key] == value {
			delete(have, key)
		}
	}
	each(have["volumes"], want["volumes"], func(h, w map[string]any) {
		image, _ := h["image"].(map[string]any)
		asked, _ := w["image"].(map[string]any)
		undoPull(image, asked, "pullPolicy")
	})
	for _, key := range []string{"initContainers", "containers"} {
		each(have[key], want[key], func(h, w map[string]any) {
			undoPull(h, w, "imagePullPolicy")
			if name, _ := h["name"].(string); slices.Contains(appArmor, name) {
				undoProfile(h, w)
			}
		})
	}
}

// each visits the objects of a list with those that another one has of the same name.
func each(have, want any, visit func(h, w map[string]any)) {
	haveList, _ := have.([]any)
	wantList, _ := want.([]any)
	wanted := byIdentity(wantList)
	for _, item := range haveList {
		match, _ := wanted.next(item)
		h, _ := item.(map[string]any)
		w, _ := match.(map[string]any)
		visit(h, w)
	}
}

func undoPull(have, want map[string]any, key string) {
	if have[key] == string(corev1.PullAlways) {
		have[key] = want[key]
	}
}

func undoProfile(have, want map[string]any) {
	context, _ := have["securityContext"].(map[string]any)
	asked, _ := want["securityContext"].(map[string]any)
	if asked["appArmorProfile"] == nil {
		delete(context, "appArmorProfile")
	}
}

// profiledByAnnotation are the containers whose AppArmor profiles are what annotations of their Pod name, separated by commas.
func profiledByAnnotation(pod *unstructured.Unstructured) string {
	annotations := pod.GetAnnotations()
	isProfile := func(key string) bool {
		return strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(annotations)), isProfile) {
		return ""
	}
	var names []string
	for _, list := range []string{"initContainers", "containers"} {
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", list)
		for _, c := range containers {
			container, _ := c.(map[string]any)
			profile, _, _ := unstructured.NestedMap(container, "securityContext", "appArmorProfile")
			name, _, _ := unstructured.NestedString(container, "name")
			named := profileOf(annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+name])
			if named != nil && reflect.DeepEqual(profile, named) {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ",")
}

// profileOf is the field that an annotation stands for; nil for none.
func profileOf(annotation string) map[string]any {
	if local, ok := strings.CutPrefix(annotation, corev1.DeprecatedAppArmorBetaProfileNamePrefix); ok {
		return map[string]any{"type": "Localhost", "localhostProfile": local}
	}
	switch annotation {
	case corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return map[string]any{"type": "RuntimeDefault"}
	case corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return map[string]any{"type": "Unconfined"}
	}
	return nil
}
