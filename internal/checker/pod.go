package checker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// A Pod cannot be compared for equality: API server, admission plugins and scheduler add to it. So everything that the
// rendering says must be in the Pod, and of what it does not say, the fields below must be absent, and so must be what is
// in them, at any depth: neither defaulting (pkg/apis/core/v1/defaults.go) nor a default admission plugin nor the scheduler
// sets them. Ephemeral containers are no matter of content: see workedIn.
var (
	podOwnFields = []string{"activeDeadlineSeconds", "affinity", "dnsConfig", "dnsPolicy", "enableServiceLinks", "hostAliases",
		"hostIPC", "hostNetwork", "hostPID", "hostUsers", "hostname", "os", "readinessGates", "restartPolicy", "runtimeClassName",
		"securityContext", "serviceAccountName", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain",
		"terminationGracePeriodSeconds", "topologySpreadConstraints", "volumes"}
	containerOwnFields = []string{"args", "command", "env", "envFrom", "lifecycle", "livenessProbe", "readinessProbe",
		"securityContext", "startupProbe", "stdin", "tty", "volumeDevices", "volumeMounts", "workingDir"}
	// notWithin are those in which the API server does add: what matchLabelKeys select (pkg/registry/core/pod/strategy.go),
	// and the defaults of every kind of volume.
	notWithin = []string{"affinity", "topologySpreadConstraints", "volumes"}
	// defaulted are the leaves that the API server adds to the others, as it writes them.
	defaulted = map[string]any{"apiVersion": "v1", "failureThreshold": int64(3), "optional": false, "path": "/",
		"periodSeconds": int64(10), "protocol": "HTTP1", "scheme": "HTTP", "service": "", "successThreshold": int64(1),
		"timeoutSeconds": int64(1)}
)

// admitted are the elements that the service account's admission adds (plugin/pkg/admission/serviceaccount).
func admitted(id string) bool {
	return strings.HasPrefix(id, "name=kube-api-access-") || id == "mountPath=/var/run/secrets/kubernetes.io/serviceaccount"
}

// podDifference says how a Pod differs from what the Sandbox controller makes of a content; "" means not at all. Leaves at
// injected paths may be in the Pod without being in the content.
func podDifference(stored podState, sandboxName string, c *content, allowed injected) (string, error) {
	var have corev1.PodSpec
	if err := json.Unmarshal([]byte(stored.spec), &have); err != nil {
		return "", fmt.Errorf("decode Pod %s: %w", sandboxName, err)
	}
	haveTree, err := treeOf(have)
	if err != nil {
		return "", err
	}
	wantTree, err := c.podTree(sandboxName)
	if err != nil {
		return "", err
	}
	undoAdmission(haveTree, wantTree, strings.Split(stored.appArmor, ","))
	haveTree = allowed.without(haveTree, wantTree)
	var parts []string
	contained(wantTree, haveTree, "", &parts)
	surplus(wantTree, haveTree, podOwnFields, "", &parts)
	for _, key := range []string{"initContainers", "containers"} {
		surplusContainers(wantTree, haveTree, key, &parts)
	}
	return shorten(parts), nil
}

// exchanged says which images somebody exchanged in a Pod that was made from this very content. Nothing that a cluster adds
// by itself does that.
func exchanged(stored podState, sandboxName string, c *content) (string, error) {
	var have corev1.PodSpec
	if err := json.Unmarshal([]byte(stored.spec), &have); err != nil {
		return "", fmt.Errorf("decode Pod %s: %w", sandboxName, err)
	}
	var parts []string
	for _, list := range []struct {
		key        string
		want, have []corev1.Container
	}{{"initContainers", c.pod.InitContainers, have.InitContainers}, {"containers", c.pod.Containers, have.Containers}} {
		for i, w := range list.want {
			at := slices.IndexFunc(list.have, func(h corev1.Container) bool { return h.Name == w.Name })
			if at < 0 {
				parts = append(parts, fmt.Sprintf("%s[%d] is not in the Pod", list.key, i))
			} else if got := list.have[at].Image; got != w.Image {
				parts = append(parts, leafDifference(fmt.Sprintf("%s[%d].image", list.key, i), got, w.Image))
			}
		}
	}
	return shorten(parts), nil
}

// podTree is the Pod that the Sandbox controller makes, in its JSON form. Only claimed volumes name the Sandbox: without
// any it is made once.
func (c *content) podTree(sandboxName string) (map[string]any, error) {
	if c.made != nil {
		return c.made, nil
	}
	tree, err := treeOf(podSpecOf(c.blueprint, sandboxName))
	if err == nil && len(c.volumes) == 0 {
		c.made = tree
	}
	return tree, err
}

// podSpecOf adds the volumes of the volumeClaimTemplates; those replace a volume of the same name
// (controllers/sandbox_controller.go MergeVolumeClaimVolumes).
func podSpecOf(b blueprint, sandboxName string) corev1.PodSpec {
	pod := *b.pod.DeepCopy()
	// The API server writes its deprecated name, too, and takes that where there is no other (pkg/apis/core/v1/defaults.go).
	pod.ServiceAccountName = cmp.Or(pod.ServiceAccountName, pod.DeprecatedServiceAccount)
	pod.DeprecatedServiceAccount = ""
	claimed := map[string]bool{}
	for _, v := range b.volumes {
		claimed[v.Metadata.Name] = true
	}
	var volumes []corev1.Volume
	for _, v := range pod.Volumes {
		if !claimed[v.Name] {
			volumes = append(volumes, v)
		}
	}
	for _, v := range b.volumes {
		source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.Metadata.Name + "-" + sandboxName}
		volumes = append(volumes, corev1.Volume{Name: v.Metadata.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source}})
	}
	pod.Volumes = volumes
	return pod
}

// contained collects the leaves of want that have does not hold.
func contained(want, have any, path string, parts *[]string) {
	switch w := want.(type) {
	case nil:
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			*parts = append(*parts, leafDifference(path, have, w))
			return
		}
		for _, key := range sortedKeys(w) {
			contained(w[key], h[key], join(path, key), parts)
		}
	case []any:
		h, _ := have.([]any)
		containedList(w, h, path, parts)
	default:
		if !reflect.DeepEqual(want, have) {
			*parts = append(*parts, leafDifference(path, have, want))
		}
	}
}

// containedList compares lists of plain values for equality, and looks for each object of want among those of have: by
// what identifies it where something does, else for any that contains it.
func containedList(want, have []any, path string, parts *[]string) {
	if len(want) > 0 && !isObject(want[0]) {
		if !reflect.DeepEqual(want, have) {
			*parts = append(*parts, leafDifference(path, any(have), any(want)))
		}
		return
	}
	found := byIdentity(have)
	for i, item := range want {
		at := fmt.Sprintf("%s[%d]", path, i)
		if match, ok := found.next(item); ok {
			contained(item, match, at, parts)
		} else if identity(item) != "" || !containedInAny(item, have, i) {
			*parts = append(*parts, fmt.Sprintf("%s is not in the Pod", at))
		}
	}
}

// maxUnordered bounds how long a list may be in which an element without identity is looked for everywhere, and not in its
// own place alone. Tenants make these lists, and nobody needs so many tolerations or sources of variables.
const maxUnordered = 1000

// containedInAny looks at the same place first: the API server adds behind what was asked for.
func containedInAny(want any, have []any, at int) bool {
	holds := func(h any) bool {
		var missing []string
		contained(want, h, "", &missing)
		return len(missing) == 0
	}
	return at < len(have) && holds(have[at]) || len(have) <= maxUnordered && slices.ContainsFunc(have, holds)
}

func isObject(v any) bool {
	_, is := v.(map[string]any)
	return is
}

// identity is what tells an element from the others of its list, "" where nothing does. One volume can have many mounts, so
// that a mount is told by its place, which the API keeps unique (patchMergeKey in k8s.io/api/core/v1/types.go).
func identity(item any) string {
	m, _ := item.(map[string]any)
	for _, key := range []string{"mountPath", "devicePath", "name"} {
		if value, _ := m[key].(string); value != "" {
			return key + "=" + value
		}
	}
	return ""
}

// elements are those of a list by their identity, in order: a variable, an HTTP header or an option of the resolver can be
// there twice.
type elements map[string][]any

func byIdentity(list []any) elements {
	out := make(elements, len(list))
	for _, item := range list {
		if id := identity(item); id != "" {
			out[id] = append(out[id], item)
		}
	}
	return out
}

// next takes out the first that is left of an item's identity.
func (e elements) next(item any) (any, bool) {
	id := identity(item)
	left := e[id]
	if len(left) == 0 {
		return nil, false
	}
	e[id] = left[1:]
	return left[0], true
}

// surplus collects what is in these fields of have, and not in those of want.
func surplus(want, have map[string]any, fields []string, path string, parts *[]string) {
	for _, key := range fields {
		beyond(want[key], have[key], join(path, key), !slices.Contains(notWithin, key), parts)
	}
}

// beyond collects what have holds and want does not; contained has compared what both hold.
func beyond(want, have any, path string, within bool, parts *[]string) {
	extra := have != nil && want == nil
	switch h := have.(type) {
	case map[string]any:
		extra = extra && len(h) > 0
		w, ok := want.(map[string]any)
		for _, key := range sortedKeys(h) {
			if ok && within && h[key] != defaulted[key] {
				beyond(w[key], h[key], join(path, key), within, parts)
			}
		}
	case []any:
		extra = extra && slices.ContainsFunc(h, func(item any) bool { return !admitted(identity(item)) })
		if w, _ := want.([]any); len(w) > 0 && isObject(w[0]) {
			beyondList(w, h, path, within, parts)
		}
	}
	if extra {
		*parts = append(*parts, path+" is in the Pod and not in the template")
	}
}

func beyondList(want, have []any, path string, within bool, parts *[]string) {
	wanted := byIdentity(want)
	for i, item := range have {
		at, id := fmt.Sprintf("%s[%d]", path, i), identity(item)
		match, ok := wanted.next(item)
		if id == "" && i < len(want) {
			match, ok = want[i], true
		}
		switch {
		case ok:
			beyond(match, item, at, within, parts)
		case id == "":
			*parts = append(*parts, at+" is in the Pod and not in the template")
		case !admitted(id):
			_, name, _ := strings.Cut(id, "=")
			*parts = append(*parts, fmt.Sprintf("%s %s is in the Pod and not in the template", path, name))
		}
	}
}

func surplusContainers(want, have map[string]any, key string, parts *[]string) {
	haveList, _ := have[key].([]any)
	wantList, _ := want[key].([]any)
	wanted := byIdentity(wantList)
	for i, item := range haveList {
		h, _ := item.(map[string]any)
		at := fmt.Sprintf("%s[%d]", key, i)
		match, ok := wanted.next(item)
		if !ok {
			*parts = append(*parts, fmt.Sprintf("%s (%v) is in the Pod and not in the template", at, h["name"]))
			continue
		}
		w, _ := match.(map[string]any)
		surplus(w, h, containerOwnFields, at, parts)
	}
}
