package revision

import (
	"fmt"
	"slices"
)

// maxReplaceable bounds what is looked for in a redacted blueprint: volumes times volumeClaimTemplates. Pods of what has more are of no
// revision that is kept of it.
const maxReplaceable = 1 << 12

// podOnly leaves out what a Pod that runs has not: scheduling gates, and volumes that volumeClaimTemplates replace. The deprecated
// name of serviceAccountName it takes as the API server does (k8s.io/kubernetes/pkg/apis/core/v1/conversion.go, v1.37 defaults.go).
func podOnly(root *object, redacted bool) *object {
	podSpec, ok := podSpecOf(root).(*object)
	if !ok {
		return podBlueprint(nil)
	}
	out := &object{fields: make([]field, 0, len(podSpec.fields))}
	for _, f := range podSpec.fields {
		switch f.name {
		case schedulingGatesKey:
			continue
		case serviceAccountKey:
			if podSpec.get(serviceAccountNameKey) != nil {
				continue
			}
			// A digest holds under its own name only: of this one, nobody says any more what it is.
			f.name = serviceAccountNameKey
		case volumesKey:
			if f.value = withoutReplaced(root, f.value, redacted); f.value == nil {
				continue
			}
		}
		out.fields = append(out.fields, f)
	}
	out.sort()
	return podBlueprint(out)
}

// withoutReplaced leaves out of a Pod's volumes those that have the name of a volumeClaimTemplate, whose volume the Pod has instead
// (agent-sandbox controllers/sandbox_controller.go, MergeVolumeClaimVolumes); nil when there is no other one.
func withoutReplaced(root *object, volumes any, redacted bool) any {
	l, _ := volumes.(*list) // as its type says
	claims, isClaimed := root.get(volumeClaimTemplatesKey).(*list)
	if !isClaimed {
		return volumes
	}
	isReplaced := replacedNames(claims)
	if redacted {
		if len(l.items)*len(claims.items) > maxReplaceable {
			return volumes
		}
		isReplaced = replacedDigests(claims)
	}
	kept := slices.DeleteFunc(slices.Clone(l.items), func(volume any) bool {
		o, _ := volume.(*object) // as its type says
		name, _ := o.get(l.mergeKey).(string)
		return isReplaced(name)
	})
	if len(kept) == 0 {
		return nil
	}
	return &list{mergeKey: l.mergeKey, items: kept}
}

func replacedNames(claims *list) func(name string) bool {
	names := make(map[any]bool, len(claims.items))
	for _, claim := range claims.items {
		names[nameOfClaim(claim)] = true
	}
	return func(name string) bool { return names[name] }
}

// replacedDigests knows only digests of the names, each by its place.
func replacedDigests(claims *list) func(name string) bool {
	return func(name string) bool {
		for i, claim := range claims.items {
			if digest(fmt.Sprintf("%s[%d].metadata.name", volumeClaimTemplatesKey, i), name) == nameOfClaim(claim) {
				return true
			}
		}
		return false
	}
}

// nameOfClaim is nil for none.
func nameOfClaim(claim any) any {
	o, _ := claim.(*object) // as its type says
	metadata, isObject := o.get("metadata").(*object)
	if !isObject {
		return nil
	}
	return metadata.get("name")
}
