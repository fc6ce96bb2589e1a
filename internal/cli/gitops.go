package cli

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The marks that Argo CD (docs: user-guide/resource_tracking) and Flux (docs:
// components/kustomize/kustomizations, components/helm/helmreleases) leave on
// what they keep in sync.
const (
	argoTracking  = "argocd.argoproj.io/tracking-id"
	argoInstance  = "argocd.argoproj.io/instance"
	fluxKustomize = "kustomize.toolkit.fluxcd.io"
	fluxHelm      = "helm.toolkit.fluxcd.io"
)

// Keeper says who keeps an object as it is written somewhere else, and by which
// mark that is known; "" when nobody is known to.
func Keeper(obj metav1.Object) (who, mark string) {
	annotations, labels := obj.GetAnnotations(), obj.GetLabels()
	if id := annotations[argoTracking]; id != "" {
		return "Argo CD", "annotation " + argoTracking + ": " + id
	}
	for _, at := range []map[string]string{labels, annotations} {
		if name := at[argoInstance]; name != "" {
			return "Argo CD", argoInstance + ": " + name
		}
	}
	for _, of := range []struct{ prefix, kind string }{{fluxKustomize, "Kustomization"}, {fluxHelm, "HelmRelease"}} {
		if name := labels[of.prefix+"/name"]; name != "" && annotations[of.prefix+"/reconcile"] != "disabled" {
			return "Flux", fmt.Sprintf("%s %s/%s", of.kind, labels[of.prefix+"/namespace"], name)
		}
	}
	return "", ""
}

// KeptWarning warns of a write that its keeper will revert; "" for no warning.
func KeptWarning(what string, obj metav1.Object) string {
	who, mark := Keeper(obj)
	if who == "" {
		return ""
	}
	return fmt.Sprintf("Warning: %s is managed by %s (%s), which will revert this: change it at its source, or suspend the sync first.", what, who, mark)
}
