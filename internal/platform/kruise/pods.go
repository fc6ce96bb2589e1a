package kruise

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/fields"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
)

var _ platform.PodContents = Objects{}

// tokenVolume begins the name of the volume that the API server makes up for a Pod's token.
const tokenVolume = "kube-api-access-"

// ContentOfPod is what a Pod runs. Its own are its node, the name of the volume for its token,
// and what claims are made for its volumes (GeneratePVCName).
func (Objects) ContentOfPod(pod *unstructured.Unstructured) (revision.Blueprint, error) {
	spec, _, err := unstructured.NestedMap(pod.Object, "spec")
	if err != nil {
		return revision.Blueprint{}, fmt.Errorf("reading spec of pod %s: %w", pod.GetName(), err)
	}
	delete(spec, "nodeName")
	for _, volume := range fields.Objects(spec, "volumes") {
		renameToken(volume)
		claim, _ := volume["persistentVolumeClaim"].(map[string]any)
		if name := fields.String(volume, "name"); fields.String(claim, "claimName") == name+"-"+pod.GetName() {
			claim["claimName"] = name
		}
	}
	for _, list := range []string{"containers", "initContainers"} {
		for _, container := range fields.Objects(spec, list) {
			for _, mount := range fields.Objects(container, "volumeMounts") {
				renameToken(mount)
			}
		}
	}
	runs, err := platform.ReadPod(&unstructured.Unstructured{Object: map[string]any{"metadata": pod.Object["metadata"], "spec": spec}})
	if err != nil {
		return revision.Blueprint{}, err
	}
	return runs.Content, nil
}

func renameToken(of map[string]any) {
	if strings.HasPrefix(fields.String(of, "name"), tokenVolume) {
		of["name"] = tokenVolume + "x"
	}
}

// isPinned reports whether a template names the node of its Pods, which is not kept of Pods.
func isPinned(template *unstructured.Unstructured) bool {
	return fields.String(template.Object, "spec", "template", "spec", "nodeName") != ""
}
