package agentsandbox

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freshbind/freshbind/internal/revision"
)

// RenderMember returns what the pool controller builds a member from, given the
// template: its blueprint with upstream's secure defaults
// (extensions/controllers/utils.go, ApplySandboxSecureDefaults). Its hash is
// the template's template-spec-hash.
func RenderMember(template *unstructured.Unstructured) (revision.Blueprint, error) {
	spec, err := memberSpec(template)
	if err != nil {
		return revision.Blueprint{}, err
	}
	b, err := revision.FromSpec(spec)
	if err != nil {
		return revision.Blueprint{}, fmt.Errorf("template %s: %w", template.GetName(), err)
	}
	return b, nil
}

// memberSpec is RenderMember as fields of a Sandbox's spec.
func memberSpec(template *unstructured.Unstructured) (map[string]any, error) {
	spec, podSpec, err := copyBlueprint(template.Object)
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", template.GetName(), err)
	}
	secureDefaults(podSpec, managesNetwork(template.Object, "", "Managed"))
	return spec, nil
}

// copyBlueprint returns a deep copy of the blueprint fields of a template's
// spec, and the pod spec inside of it.
func copyBlueprint(object map[string]any) (spec, podSpec map[string]any, err error) {
	source, _ := object["spec"].(map[string]any)
	spec = map[string]any{}
	for _, key := range []string{"podTemplate", "volumeClaimTemplates", "service"} {
		if v, ok := source[key]; ok {
			spec[key] = runtime.DeepCopyJSONValue(v)
		}
	}
	podTemplate, _ := spec["podTemplate"].(map[string]any)
	podSpec, _ = podTemplate["spec"].(map[string]any)
	if podSpec == nil {
		return nil, nil, fmt.Errorf("spec.podTemplate.spec: required, and must be an object")
	}
	return spec, podSpec, nil
}

// managesNetwork reports whether agent-sandbox writes the network policy of what the
// template builds, and nothing in the template changes it; managed are the values of
// networkPolicyManagement that say so.
func managesNetwork(template map[string]any, managed ...string) bool {
	spec, _ := template["spec"].(map[string]any)
	return spec["networkPolicy"] == nil && slices.Contains(managed, str(spec, "networkPolicyManagement"))
}

func secureDefaults(podSpec map[string]any, dns bool) {
	if podSpec["automountServiceAccountToken"] == nil {
		podSpec["automountServiceAccountToken"] = false
	}
	if dns && str(podSpec, "dnsPolicy") == "" {
		podSpec["dnsPolicy"] = "None"
		podSpec["dnsConfig"] = map[string]any{"nameservers": []any{"8.8.8.8", "1.1.1.1"}}
	}
}

// unrenderableError says why a template gives a claim no sandbox.
type unrenderableError struct{ why string }

func (e *unrenderableError) Error() string { return e.why }

func unrenderable(format string, args ...any) error {
	return &unrenderableError{why: fmt.Sprintf(format, args...)}
}

// renderCold returns what the claim controller builds a cold start from
// (extensions/controllers/sandboxclaim_controller.go, createSandbox). The error
// is an *unrenderableError when the template's policies refuse the claim.
func renderCold(template, claim *unstructured.Unstructured) (revision.Blueprint, error) {
	spec, err := coldSpec(template, claim)
	if err != nil {
		return revision.Blueprint{}, err
	}
	return revision.FromSpec(spec)
}

// coldSpec is renderCold as fields of a Sandbox's spec.
func coldSpec(template, claim *unstructured.Unstructured) (map[string]any, error) {
	spec, podSpec, err := copyBlueprint(template.Object)
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", template.GetName(), err)
	}
	claimSpec, _ := claim.Object["spec"].(map[string]any)
	if err := mergeVolumeClaims(spec, claimSpec, str(template.Object, "spec", "volumeClaimTemplatesPolicy")); err != nil {
		return nil, err
	}
	if err := injectEnv(podSpec, claimSpec, str(template.Object, "spec", "envVarsInjectionPolicy")); err != nil {
		return nil, err
	}
	// From v0.2.1 on, the API server fills networkPolicyManagement in. A template without
	// it is one of v0.1, of which v0.1.1 adds the token's default and nothing about DNS.
	secureDefaults(podSpec, managesNetwork(template.Object, "Managed"))
	return spec, nil
}

// injectEnv adds the claim's variables: to the container each one names (init
// containers too), else to the first container, after those that name it.
func injectEnv(podSpec, claimSpec map[string]any, policy string) error {
	env := objects(claimSpec, "env")
	if len(env) == 0 {
		return nil
	}
	if policy != "Allowed" && policy != "Overrides" {
		return unrenderable("envVarsInjectionPolicy %q allows no claim to set env", policy)
	}
	byContainer := map[string][]map[string]any{}
	for _, e := range env {
		name := str(e, "containerName")
		byContainer[name] = append(byContainer[name], e)
	}
	known := map[string]bool{"": true}
	for _, key := range []string{"initContainers", "containers"} {
		for i, c := range objects(podSpec, key) {
			name := str(c, "name")
			known[name] = true
			add := slices.Clone(byContainer[name])
			if key == "containers" && i == 0 {
				add = append(add, byContainer[""]...)
			}
			if err := setEnv(c, add, policy); err != nil {
				return err
			}
		}
	}
	for name := range byContainer {
		if !known[name] {
			return unrenderable("spec.env names container %q, which the template does not have", name)
		}
	}
	return nil
}

func setEnv(container map[string]any, add []map[string]any, policy string) error {
	if len(add) == 0 {
		return nil
	}
	list, _ := container["env"].([]any)
	at := firstByName(list, envName)
	for _, e := range add {
		name := str(e, "name")
		entry := map[string]any{"name": name, "value": str(e, "value")}
		i, has := at[name]
		switch {
		case !has:
			at[name] = len(list)
			list = append(list, entry)
		case policy == "Overrides":
			list[i] = entry
		default:
			return unrenderable("envVarsInjectionPolicy Allowed lets no claim override env %q", name)
		}
	}
	container["env"] = list
	return nil
}

// mergeVolumeClaims adds the claim's volumeClaimTemplates; under Overrides one
// of the same name takes the place of the template's.
func mergeVolumeClaims(spec, claimSpec map[string]any, policy string) error {
	fromClaim, _ := claimSpec["volumeClaimTemplates"].([]any)
	if len(fromClaim) == 0 {
		return nil
	}
	if policy != "Allowed" && policy != "Overrides" {
		return unrenderable("volumeClaimTemplatesPolicy %q allows no claim to set volumeClaimTemplates", policy)
	}
	merged, _ := spec["volumeClaimTemplates"].([]any)
	at := firstByName(merged, volumeClaimName)
	for _, v := range fromClaim {
		name := volumeClaimName(v)
		i, has := at[name]
		switch {
		case !has:
			at[name] = len(merged)
			merged = append(merged, runtime.DeepCopyJSONValue(v))
		case policy == "Overrides":
			merged[i] = runtime.DeepCopyJSONValue(v)
		default:
			return unrenderable("volumeClaimTemplatesPolicy Allowed lets no claim override volume %q", name)
		}
	}
	spec["volumeClaimTemplates"] = merged
	return nil
}

// firstByName says where the first of each name is. Tenants can make these lists
// so long that a search for each of their entries takes seconds.
func firstByName(list []any, nameOf func(any) string) map[string]int {
	at := make(map[string]int, len(list))
	for i, v := range slices.Backward(list) {
		at[nameOf(v)] = i
	}
	return at
}

func envName(v any) string {
	m, _ := v.(map[string]any)
	return str(m, "name")
}

func volumeClaimName(v any) string {
	m, _ := v.(map[string]any)
	return str(m, "metadata", "name")
}
