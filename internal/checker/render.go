package checker

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// policies are the template's fields that shape a rendering without being part of it.
type policies struct {
	secureDNS bool
	env       string
	volumes   string
}

func policiesOf(u *unstructured.Unstructured) policies {
	management := nestedString(u, "spec", "networkPolicyManagement")
	policy, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "networkPolicy")
	return policies{
		secureDNS: (management == "" || management == "Managed") && policy == nil,
		env:       nestedString(u, "spec", "envVarsInjectionPolicy"),
		volumes:   nestedString(u, "spec", "volumeClaimTemplatesPolicy"),
	}
}

// envVar is one entry of a claim's spec.env.
type envVar struct {
	Name          string `json:"name"`
	Value         string `json:"value"`
	ContainerName string `json:"containerName"`
}

func decodeClaim(spec map[string]any) ([]envVar, []volumeClaim, error) {
	var out []envVar
	list, ok := spec["env"].([]any)
	if !ok && spec["env"] != nil {
		return nil, nil, fmt.Errorf("decode spec.env: it is a %T, not a list", spec["env"])
	}
	for i, item := range list {
		var e envVar
		if err := decode(item, &e, fmt.Sprintf("spec.env[%d]", i)); err != nil {
			return nil, nil, err
		}
		out = append(out, e)
	}
	volumes, err := decodeVolumes(spec["volumeClaimTemplates"])
	return out, volumes, err
}

// renderMember is what a pool builds: the template's blueprint with upstream's secure defaults
// (extensions/controllers/utils.go ApplySandboxSecureDefaults).
func renderMember(b blueprint, p policies) blueprint {
	pod := b.pod.DeepCopy()
	secureDefaults(pod, p)
	b.pod = *pod
	return b
}

func secureDefaults(pod *corev1.PodSpec, p policies) {
	if pod.AutomountServiceAccountToken == nil {
		pod.AutomountServiceAccountToken = new(bool)
	}
	if p.secureDNS && pod.DNSPolicy == "" {
		pod.DNSPolicy = corev1.DNSNone
		pod.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"8.8.8.8", "1.1.1.1"}}
	}
}

// renderCold is what a claim is started from (sandboxclaim_controller.go createSandbox). Its error says that the template
// would not start this claim at all. Upstream's newer refusal of envFrom under the policy Allowed is left out: it does not
// change what is rendered, and v0.4.6 does not know it.
func renderCold(b blueprint, p policies, claim claimState) (blueprint, error) {
	pod := b.pod.DeepCopy()
	volumes, err := mergeVolumes(b.volumes, claim.volumes, p.volumes)
	if err != nil {
		return blueprint{}, err
	}
	if err := injectEnv(pod, claim.env, p.env); err != nil {
		return blueprint{}, err
	}
	secureDefaults(pod, p)
	b.pod, b.volumes = *pod, volumes
	return b, nil
}

func injectEnv(pod *corev1.PodSpec, env []envVar, policy string) error {
	if len(env) == 0 {
		return nil
	}
	if policy != "Allowed" && policy != "Overrides" {
		return fmt.Errorf("envVarsInjectionPolicy %q refuses the claim's env", policy)
	}
	// Upstream gives the first container the entries that name it before those that name none.
	ordered := slices.Clone(env)
	slices.SortStableFunc(ordered, func(a, b envVar) int {
		return cmp.Compare(min(1, len(b.ContainerName)), min(1, len(a.ContainerName)))
	})
	set := map[*corev1.Container]map[string]int{}
	for _, e := range ordered {
		containers := containersFor(pod, e.ContainerName)
		if len(containers) == 0 {
			return fmt.Errorf("the claim's env %s is for container %q, which the template does not have", e.Name, e.ContainerName)
		}
		for _, c := range containers {
			if set[c] == nil {
				set[c] = places(c.Env)
			}
			if err := setEnv(c, set[c], e, policy); err != nil {
				return err
			}
		}
	}
	return nil
}

// containersFor returns the containers an env entry goes to: all of that name, or the first main one where none is named.
func containersFor(pod *corev1.PodSpec, name string) []*corev1.Container {
	var out []*corev1.Container
	for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			if list[i].Name == name {
				out = append(out, &list[i])
			}
		}
	}
	if name == "" && len(pod.Containers) > 0 {
		out = append(out, &pod.Containers[0])
	}
	return out
}

// places says where in a list each name stands first.
func places(env []corev1.EnvVar) map[string]int {
	out := make(map[string]int, len(env))
	for i := len(env) - 1; i >= 0; i-- {
		out[env[i].Name] = i
	}
	return out
}

func setEnv(c *corev1.Container, at map[string]int, e envVar, policy string) error {
	value := corev1.EnvVar{Name: e.Name, Value: e.Value}
	i, isSet := at[e.Name]
	if !isSet {
		at[e.Name] = len(c.Env)
		c.Env = append(c.Env, value)
		return nil
	}
	if policy != "Overrides" {
		return fmt.Errorf("envVarsInjectionPolicy %q refuses to override env %s", policy, e.Name)
	}
	c.Env[i] = value
	return nil
}

func mergeVolumes(template, claim []volumeClaim, policy string) ([]volumeClaim, error) {
	if len(claim) == 0 {
		return template, nil
	}
	if policy != "Allowed" && policy != "Overrides" {
		return nil, fmt.Errorf("volumeClaimTemplatesPolicy %q refuses the claim's volumeClaimTemplates", policy)
	}
	out := slices.Clone(template)
	for _, v := range claim {
		i := slices.IndexFunc(template, func(have volumeClaim) bool { return have.Metadata.Name == v.Metadata.Name })
		switch {
		case i < 0:
			out = append(out, v)
		case policy == "Overrides":
			out[i] = v
		default:
			return nil, fmt.Errorf("volumeClaimTemplatesPolicy %q refuses to override volume %s", policy, v.Metadata.Name)
		}
	}
	return out, nil
}
