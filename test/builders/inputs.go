package builders

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Template builds a SandboxTemplate.
type Template struct{ Builder[*Template] }

// MakeTemplate starts a template with one container, "c", of image "sandbox:v1", and with
// what the API server fills in from v0.2.1 on.
func MakeTemplate(namespace, name string) *Template {
	t := &Template{Builder[*Template]{u: newObject(GroupExtensions, "SandboxTemplate", namespace, name)}}
	t.self = t
	t.Set("Managed", "spec", "networkPolicyManagement")
	return t.Set(corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "sandbox:v1"}}}, "spec", "podTemplate", "spec")
}

// TemplateFrom continues from an existing template, for instance for its next version.
func TemplateFrom(u *unstructured.Unstructured) *Template {
	t := &Template{Builder[*Template]{u: u.DeepCopy()}}
	t.self = t
	return t
}

// APIVersion sets the version ("v1alpha1"), not the group.
func (t *Template) APIVersion(version string) *Template {
	t.u.SetAPIVersion(apiVersion(GroupExtensions, version))
	return t
}

// Image sets the image of the first container.
func (t *Template) Image(image string) *Template { return t.container("image", image) }

// Env sets the env of the first container, given as name, value, name, value.
func (t *Template) Env(pairs ...string) *Template { return t.container("env", envList(pairs)) }

func (t *Template) container(key string, value any) *Template {
	list, _, _ := unstructured.NestedSlice(t.u.Object, "spec", "podTemplate", "spec", "containers")
	first, _ := list[0].(map[string]any)
	first[key] = plain(value)
	return t.PodSpec(list, "containers")
}

// Container adds a container.
func (t *Template) Container(name, image string, env ...string) *Template {
	return t.appendContainer("containers", name, image, env)
}

// InitContainer adds an init container.
func (t *Template) InitContainer(name, image string, env ...string) *Template {
	return t.appendContainer("initContainers", name, image, env)
}

func (t *Template) appendContainer(key, name, image string, env []string) *Template {
	list, _, _ := unstructured.NestedSlice(t.u.Object, "spec", "podTemplate", "spec", key)
	c := map[string]any{"name": name, "image": image}
	if len(env) > 0 {
		c["env"] = envList(env)
	}
	return t.PodSpec(append(list, c), key)
}

// PodSpec sets a field below spec.podTemplate.spec.
func (t *Template) PodSpec(value any, path ...string) *Template {
	return t.Set(value, append([]string{"spec", "podTemplate", "spec"}, path...)...)
}

// RuntimeClass sets runtimeClassName; "" removes it.
func (t *Template) RuntimeClass(name string) *Template {
	if name == "" {
		return t.Unset("spec", "podTemplate", "spec", "runtimeClassName")
	}
	return t.PodSpec(name, "runtimeClassName")
}

// VolumeClaim adds a volumeClaimTemplate.
func (t *Template) VolumeClaim(name, size string) *Template {
	addVolumeClaim(t.u, name, size)
	return t
}

// Service sets spec.service.
func (t *Template) Service(on bool) *Template { return t.Set(on, "spec", "service") }

// EnvPolicy sets envVarsInjectionPolicy: Allowed, Overrides or Disallowed.
func (t *Template) EnvPolicy(policy string) *Template {
	return t.Set(policy, "spec", "envVarsInjectionPolicy")
}

// VolumeClaimPolicy sets volumeClaimTemplatesPolicy: Allowed, Overrides or Disallowed.
func (t *Template) VolumeClaimPolicy(policy string) *Template {
	return t.Set(policy, "spec", "volumeClaimTemplatesPolicy")
}

// Unmanaged sets networkPolicyManagement to Unmanaged, so that no DNS is injected.
func (t *Template) Unmanaged() *Template {
	return t.Set("Unmanaged", "spec", "networkPolicyManagement")
}

// Pool builds a SandboxWarmPool.
type Pool struct{ Builder[*Pool] }

// MakePool starts a pool of one replica that refers to the template "python".
func MakePool(namespace, name string) *Pool {
	p := &Pool{Builder[*Pool]{u: newObject(GroupExtensions, "SandboxWarmPool", namespace, name)}}
	p.self = p
	return p.Replicas(1).Template("python")
}

// PoolFrom continues from an existing pool.
func PoolFrom(u *unstructured.Unstructured) *Pool {
	p := &Pool{Builder[*Pool]{u: u.DeepCopy()}}
	p.self = p
	return p
}

// APIVersion sets the version, not the group.
func (p *Pool) APIVersion(version string) *Pool {
	p.u.SetAPIVersion(apiVersion(GroupExtensions, version))
	return p
}

// Template sets sandboxTemplateRef.
func (p *Pool) Template(name string) *Pool { return p.Set(name, "spec", "sandboxTemplateRef", "name") }

// Replicas sets spec.replicas.
func (p *Pool) Replicas(n int64) *Pool { return p.Set(n, "spec", "replicas") }

// Strategy sets updateStrategy.type.
func (p *Pool) Strategy(strategy string) *Pool {
	return p.Set(strategy, "spec", "updateStrategy", "type")
}

// Claim builds a SandboxClaim.
type Claim struct{ Builder[*Claim] }

// MakeClaim starts a claim on the pool "python".
func MakeClaim(namespace, name string) *Claim {
	c := &Claim{Builder[*Claim]{u: newObject(GroupExtensions, "SandboxClaim", namespace, name)}}
	c.self = c
	return c.Pool("python")
}

// MakeClaimV1Alpha1 starts a v1alpha1 claim on a template; warmPool is "none", "default" or the name of a pool.
func MakeClaimV1Alpha1(namespace, name, template, warmPool string) *Claim {
	c := MakeClaim(namespace, name).Unset("spec", "warmPoolRef")
	c.u.SetAPIVersion(apiVersion(GroupExtensions, V1Alpha1))
	return c.Set(template, "spec", "sandboxTemplateRef", "name").Set(warmPool, "spec", "warmpool")
}

// ClaimFrom continues from an existing claim.
func ClaimFrom(u *unstructured.Unstructured) *Claim {
	c := &Claim{Builder[*Claim]{u: u.DeepCopy()}}
	c.self = c
	return c
}

// Pool sets warmPoolRef.
func (c *Claim) Pool(name string) *Claim { return c.Set(name, "spec", "warmPoolRef", "name") }

// Env adds an env variable for the named container; "" is the default one.
func (c *Claim) Env(container, name, value string) *Claim {
	list, _, _ := unstructured.NestedSlice(c.u.Object, "spec", "env")
	env := map[string]any{"name": name, "value": value}
	if container != "" {
		env["containerName"] = container
	}
	return c.Set(append(list, env), "spec", "env")
}

// VolumeClaim adds a volumeClaimTemplate of the claim's own.
func (c *Claim) VolumeClaim(name, size string) *Claim {
	addVolumeClaim(c.u, name, size)
	return c
}

// Names records the chosen member: by annotation, as v0.5 and later do, or by label for v1alpha1, as v0.4.6 does.
func (c *Claim) Names(member string) *Claim {
	if c.u.GetAPIVersion() == apiVersion(GroupExtensions, V1Alpha1) {
		return c.Label(SandboxName, member)
	}
	return c.Annotation(SandboxName, member)
}

func addVolumeClaim(u *unstructured.Unstructured, name, size string) {
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "volumeClaimTemplates")
	setAt(u, append(list, map[string]any{
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"},
			"resources":   map[string]any{"requests": map[string]any{"storage": size}},
		},
	}), "spec", "volumeClaimTemplates")
}

func envList(pairs []string) []any {
	var out []any
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, map[string]any{"name": pairs[i], "value": pairs[i+1]})
	}
	return out
}
