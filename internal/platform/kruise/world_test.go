package kruise

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform"
)

// store answers as an API server that has these objects, by resource and name.
type store struct {
	objs map[string]*unstructured.Unstructured
	fail map[string]bool

	mu   sync.Mutex
	read []string
}

func (s *store) Get(_ context.Context, ref liveread.Ref) (*unstructured.Unstructured, error) {
	key := ref.GVR.Resource + "/" + ref.Name
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = append(s.read, key)
	if s.fail[key] {
		return nil, apierrors.NewInternalError(fmt.Errorf("the test lets nobody read %s", key))
	}
	if obj := s.objs[key]; obj != nil && (ref.Namespace == "" || obj.GetNamespace() == ref.Namespace) {
		return obj, nil
	}
	return nil, apierrors.NewNotFound(ref.GVR.GroupResource(), ref.Name)
}

// byUID looks for a UID in place of a name.
type byUID struct{ *store }

func (s byUID) Get(_ context.Context, ref liveread.Ref) (*unstructured.Unstructured, error) {
	for key, obj := range s.objs {
		if strings.HasPrefix(key, ref.GVR.Resource+"/") && string(obj.GetUID()) == ref.Name && obj.GetNamespace() == ref.Namespace {
			return obj, nil
		}
	}
	return nil, apierrors.NewNotFound(ref.GVR.GroupResource(), ref.Name)
}

type resolver struct{}

func (resolver) Resource(_ context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	return gr.WithVersion(version), nil
}

// cluster has a pool with one fresh member, its Pod and a claim for one of the pool.
// Whatever a test changes it does to these.
type cluster struct {
	store
	member, written *unstructured.Unstructured
	uses            []string
	// had are the older revisions, by the kind and the name of the template; digests says
	// that no more is kept of them than that.
	had     map[string][]*unstructured.Unstructured
	digests bool
}

// Revisions are those that a template had.
func (c *cluster) Revisions(_ context.Context, template *unstructured.Unstructured) ([]platform.Recorded, error) {
	if c.fail["history"] {
		return nil, errors.New("the test lets nobody read the history")
	}
	var out []platform.Recorded
	for _, t := range c.had[template.GetKind()+"/"+template.GetName()] {
		content, err := Objects{}.Render(t)
		if err != nil {
			return nil, err
		}
		r := platform.Recorded{Hash: content.Hash(), Template: t, Rendered: content}
		if c.digests {
			r.Template, r.Rendered = nil, content.Redact()
		}
		out = append(out, r)
	}
	return out, nil
}

// edited has the template that is in force recorded, and then changed.
func (c *cluster) edited(template *unstructured.Unstructured, change func(*unstructured.Unstructured)) {
	key := template.GetKind() + "/" + template.GetName()
	if c.had == nil {
		c.had = map[string][]*unstructured.Unstructured{}
	}
	c.had[key] = append(c.had[key], template.DeepCopy())
	change(template)
}

const image, newer = "registry.example.com/box:1", "registry.example.com/box:2"

func newCluster() *cluster {
	c := &cluster{store: store{objs: map[string]*unstructured.Unstructured{}, fail: map[string]bool{}}}
	set := made(kindSet, "pool")
	set.Object["spec"] = map[string]any{"replicas": int64(2), "template": podTemplate(image)}
	c.member = memberOf(set, "m")
	claim := made(kindClaim, "c")
	claim.Object["spec"] = map[string]any{"templateName": "pool"}
	namespace := &unstructured.Unstructured{Object: map[string]any{}}
	namespace.SetName("ns")
	c.add("namespaces", namespace)
	c.add(Sets.Resource, set)
	c.add(Claims.Resource, claim)
	c.add(pods.Resource, podOf(c.member, image))
	c.written = takenFor(c.member, "uid-c", "c")
	return c
}

func (c *cluster) add(resource string, obj *unstructured.Unstructured) {
	c.objs[resource+"/"+obj.GetName()] = obj
}

func (c *cluster) set() *unstructured.Unstructured   { return c.objs[Sets.Resource+"/pool"] }
func (c *cluster) claim() *unstructured.Unstructured { return c.objs[Claims.Resource+"/c"] }

// template is the one that byRef has the pool refer to.
func (c *cluster) template() *unstructured.Unstructured { return c.objs[Templates.Resource+"/tpl"] }
func (c *cluster) pod() *unstructured.Unstructured      { return c.objs[pods.Resource+"/m"] }

func (c *cluster) platform() *Platform {
	return &Platform{Stored: platform.Stored{Reader: liveread.NewReader(&c.store, nil), Resolver: resolver{}}, ByUID: liveread.NewReader(byUID{&c.store}, nil), History: c}
}

func made(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: Group, Version: version, Kind: kind})
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetUID(types.UID("uid-" + name))
	u.SetGeneration(1)
	return u
}

func podTemplate(image string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "box"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}},
	}
}

// memberOf is a Sandbox as the SandboxSet's controller makes it.
func memberOf(set *unstructured.Unstructured, name string) *unstructured.Unstructured {
	m := made(kindSandbox, name)
	m.SetLabels(map[string]string{claimedLabel: "false", poolLabel: set.GetName(), templateLabel: set.GetName(), prefix + "template-hash": "abc"})
	m.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: Group + "/" + version, Kind: kindSet, Name: set.GetName(), UID: set.GetUID(), Controller: ptr.To(true)}})
	spec := set.DeepCopy().Object["spec"].(map[string]any)
	delete(spec, "replicas")
	m.Object["spec"] = spec
	m.Object["status"] = map[string]any{"phase": "Running", "podInfo": map[string]any{"podIP": "10.0.0.1", "podUID": "uid-pod"}}
	return m
}

func podOf(member *unstructured.Unstructured, image string) *unstructured.Unstructured {
	p := &unstructured.Unstructured{Object: map[string]any{
		"spec":   podTemplate(image)["spec"],
		"status": map[string]any{"phase": "Running", "podIPs": []any{map[string]any{"ip": "10.0.0.1"}}},
	}}
	p.SetKind("Pod")
	p.SetNamespace("ns")
	p.SetName(member.GetName())
	p.SetUID("uid-pod")
	p.SetGeneration(1)
	p.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: member.GetAPIVersion(), Kind: kindSandbox, Name: member.GetName(), UID: member.GetUID(), Controller: ptr.To(true)}})
	return p
}

// takenFor is the one write with which a member is taken.
func takenFor(member *unstructured.Unstructured, owner, claim string) *unstructured.Unstructured {
	out := member.DeepCopy()
	out.SetOwnerReferences(nil)
	labels := out.GetLabels()
	labels[claimedLabel] = yes
	if claim != "" {
		labels[claimNameLabel] = claim
	}
	out.SetLabels(labels)
	out.SetAnnotations(map[string]string{ownerAnnotation: owner, prefix + "lock": "a-lock"})
	set(out, owner, "spec", "template", "metadata", "labels", ownerLabel)
	set(out, "2027-01-01T00:00:00Z", "spec", "shutdownTime")
	return out
}

// coldFor is the Sandbox that a claim is given where the pool has none.
func coldFor(set *unstructured.Unstructured, owner, claim string) *unstructured.Unstructured {
	out := takenFor(memberOf(set, "cold"), owner, claim)
	out.Object["status"] = nil
	out.SetUID("")
	return out
}

// set puts a value at a path of an object.
func set(u *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		panic(err)
	}
}

// container is the first one of spec.template, or of a Pod's spec.
func container(u *unstructured.Unstructured) map[string]any {
	if c := firstContainer(u); c != nil {
		return c
	}
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "containers")
	return list.([]any)[0].(map[string]any)
}
