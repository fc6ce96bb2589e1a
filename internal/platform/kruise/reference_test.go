package kruise

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

func byRef(c *cluster) {
	set(c.set(), map[string]any{"templateRef": map[string]any{"name": "tpl"}, "replicas": int64(1)}, "spec")
	template := made(kindTemplate, "tpl")
	template.Object["spec"] = map[string]any{"template": podTemplate(image)}
	c.add(Templates.Resource, template)
	c.member = memberOf(c.set(), "m")
	c.written = takenFor(c.member, "uid-c", "c")
	unstructured.RemoveNestedField(c.written.Object, "spec", "template")
	c.pod().SetOwnerReferences(podOf(c.member, image).GetOwnerReferences())
}

// coldByRef has a pool that refers to a template, and a cold start that does.
func coldByRef(c *cluster) {
	byRef(c)
	c.member, c.written = nil, coldFor(c.set(), "uid-c", "c")
	unstructured.RemoveNestedField(c.written.Object, "spec", "template")
	delete(c.objs, pods.Resource+"/m")
}

func runtimes(u *unstructured.Unstructured) {
	set(u, []any{map[string]any{"name": "r"}}, "spec", "runtimes")
}

// From a SandboxTemplate comes the Pod, and the rest from the SandboxSet.
func TestBindsByReference(t *testing.T) {
	judgeEach(t, map[string]reasonCase{
		"stale runtimes": {func(c *cluster) { byRef(c); runtimes(c.set()) }, freshness.UnknownRevision},
		"with runtimes": {func(c *cluster) {
			byRef(c)
			for _, of := range []*unstructured.Unstructured{c.set(), c.member, c.written} {
				runtimes(of)
			}
		}, freshness.Fresh},
		"runtimes of the template": {func(c *cluster) { byRef(c); runtimes(c.template()) }, freshness.Fresh},
		"and the pool is inline": {func(c *cluster) {
			byRef(c)
			unstructured.RemoveNestedField(c.set().Object, "spec", "templateRef")
			set(c.set(), podTemplate(image), "spec", "template")
			set(c.member, "pool", "spec", "templateRef", "name")
			set(c.written, "pool", "spec", "templateRef", "name")
		}, freshness.Fresh},
		"cold": {coldByRef, freshness.Fresh},
		"cold to what changed": {func(c *cluster) {
			coldByRef(c)
			container(c.template())["image"] = newer
		}, freshness.Fresh},
		"cold, stale runtimes": {func(c *cluster) { coldByRef(c); runtimes(c.set()) }, freshness.UnknownRevision},
		"that says another pod, too": {func(c *cluster) {
			byRef(c)
			for _, of := range []*unstructured.Unstructured{c.member, c.written} {
				set(of, podTemplate(newer), "spec", "template")
			}
		}, freshness.UnknownRevision},
		"that has what claims write, too": {func(c *cluster) {
			byRef(c)
			set(c.member, "uid-before", "spec", "template", "metadata", "labels", "app")
			c.written = takenFor(c.member, "uid-c", "c")
		}, freshness.Fresh},
		"cold, that says another pod, too": {func(c *cluster) { coldByRef(c); set(c.written, podTemplate(newer), "spec", "template") }, freshness.UnknownRevision},
		"cold, that says nothing":          {func(c *cluster) { coldByRef(c); c.written.Object["spec"] = map[string]any{} }, freshness.UnknownRevision},
		"born of a namesake of the pool": {func(c *cluster) {
			c.written, c.member = c.member, nil
			c.written.Object["spec"] = map[string]any{"templateRef": map[string]any{"name": "pool"}}
		}, freshness.UnknownRevision},
		"cold to a namesake of the pool": {func(c *cluster) {
			coldly(c)
			c.written.Object["spec"] = map[string]any{"templateRef": map[string]any{"name": "pool"}}
		}, freshness.UnknownRevision},
	})
}

// mounted gives a Pod a volume that was made for it, a token, and a node.
func mounted(pod *unstructured.Unstructured, token, node string) *unstructured.Unstructured {
	pod = pod.DeepCopy()
	set(pod, node, "spec", "nodeName")
	set(pod, []any{
		map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "data-" + pod.GetName()}},
		map[string]any{"name": "kube-api-access-" + token, "projected": map[string]any{"defaultMode": int64(420)}},
	}, "spec", "volumes")
	container(pod)["volumeMounts"] = []any{map[string]any{"name": "kube-api-access-" + token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true}}
	return pod
}

func volumes(u *unstructured.Unstructured) {
	set(u, []any{map[string]any{"metadata": map[string]any{"name": "data"}}}, "spec", "volumeClaimTemplates")
}

// Pods alone show what members are built from that refer to a template, and all of a Pod is
// compared.
func TestMembersThatRefer(t *testing.T) {
	commanded := func(u *unstructured.Unstructured) { container(u)["command"] = []any{"serve"} }
	type found struct {
		Class freshness.Class
		// Named: as the revision in force, or as the one before.
		Named string
	}
	current, unseen := found{freshness.Current, "in force"}, found{freshness.Unclassified, ""}
	stale, unknown, unrecorded := found{freshness.Stale, "before"}, found{freshness.Unknown, "another"}, found{freshness.Unknown, "before"}
	for name, tc := range map[string]struct {
		change func(*cluster)
		want   found
	}{
		"fresh":                {func(*cluster) {}, current},
		"of an older image":    {func(c *cluster) { c.edited(c.template(), imaged(newer)) }, stale},
		"of an older command":  {func(c *cluster) { c.edited(c.template(), commanded) }, stale},
		"of older digests":     {func(c *cluster) { c.digests = true; c.edited(c.template(), commanded) }, stale},
		"of what nobody knows": {func(c *cluster) { commanded(c.template()) }, unrecorded},
		"of what is in force again": {func(c *cluster) {
			c.edited(c.template(), commanded)
			c.edited(c.template(), imaged(image))
			delete(container(c.template()), "command")
		}, current},
		"edited by hand": {func(c *cluster) { container(c.pod())["command"] = []any{"sh"} }, unknown},
		"of more than is kept": {func(c *cluster) {
			container(c.pod())["args"] = []any{strings.Repeat("x", platform.MaxContents)}
		}, found{freshness.Current, ""}},
		"that says its pod itself, too": {func(c *cluster) { set(c.member, podTemplate(image), "spec", "template") }, unknown},
		"without a pod":                 {func(c *cluster) { delete(c.objs, pods.Resource+"/m") }, unseen},
		"with another's pod": {func(c *cluster) {
			refs := c.pod().GetOwnerReferences()
			refs[0].UID = "uid-of-another"
			c.pod().SetOwnerReferences(refs)
		}, unseen},
		"of older runtimes": {func(c *cluster) { runtimes(c.set()) }, unrecorded},
		// Its Pod is in force: it is named as the SandboxSet was.
		"of older runtimes, recorded": {func(c *cluster) { c.edited(c.set(), runtimes) }, found{freshness.Stale, "another"}},
		"of older runtimes, recorded, and an older command": {func(c *cluster) {
			c.edited(c.set(), runtimes)
			c.edited(c.template(), commanded)
		}, stale},
		"with volumes": {func(c *cluster) {
			volumes(c.set())
			volumes(c.member)
			c.add(pods.Resource, mounted(c.pod(), "abcde", "n"))
		}, current},
		"with what the API server added": {func(c *cluster) {
			limit := map[string]any{"cpu": "1"}
			container(c.template())["resources"] = map[string]any{"limits": limit}
			container(c.pod())["resources"] = map[string]any{"limits": limit, "requests": limit}
		}, current},
		"of an older image, with volumes": {func(c *cluster) {
			volumes(c.set())
			volumes(c.member)
			c.add(pods.Resource, mounted(c.pod(), "abcde", "n"))
			c.edited(c.template(), commanded)
		}, stale},
		"of another template":  {func(c *cluster) { set(c.member, "other", "spec", "templateRef", "name") }, found{freshness.Former, ""}},
		"that says all itself": {func(c *cluster) { c.member.Object["spec"] = map[string]any{"template": podTemplate(image)} }, current},
		"that says what is older": {func(c *cluster) {
			c.member.Object["spec"] = map[string]any{"template": podTemplate(image)}
			c.edited(c.template(), imaged(newer))
		}, stale},
		"of a template that is gone":      {func(c *cluster) { delete(c.objs, Templates.Resource+"/tpl") }, unseen},
		"of a template that names a node": {func(c *cluster) { set(c.template(), "n", "spec", "template", "spec", "nodeName") }, unseen},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			byRef(c)
			before, err := Objects{}.Render(c.template())
			if err != nil {
				t.Fatal(err)
			}
			tc.change(c)
			j, inForce := seen(t, c)
			got := found{Class: j.Class}
			switch j.Found {
			case "":
			case inForce:
				got.Named = "in force"
			case before.Hash():
				got.Named = "before"
			default:
				got.Named = "another"
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the member is (-want,+got):\n%s", diff)
			}
			if name == "of more than is kept" {
				// Whoever reads all of its Pod knows more.
				j.Class = freshness.Unknown
			}
			if read := readInFull(t, c); read.Class != j.Class || j.Found != "" && read.Found != j.Found {
				t.Errorf("read in full it is %+v, want %+v", read, j)
			}
		})
	}
}

// readInFull is what a member is to whoever reads it, and its Pod, from the API server.
func readInFull(t *testing.T, c *cluster) platform.Judgement {
	t.Helper()
	i, err := c.platform().Inspect(t.Context(), c.set(), c.template())
	if err != nil {
		t.Fatal(err)
	}
	v, err := i.Object(c.member, c.pod())
	if err != nil {
		t.Fatal(err)
	}
	return platform.Judgement{Class: freshness.ClassOf(v), Found: v.Found}
}

// seen is what a cache shows a member to be, and the revision in force.
func seen(t *testing.T, c *cluster) (j platform.Judgement, inForce string) {
	t.Helper()
	i, err := c.platform().Inspect(t.Context(), c.set(), c.template())
	if err != nil {
		t.Fatal(err)
	}
	reducer := platform.NewReducer(Objects{})
	m := reducer.Member(c.member, nil)
	if j, err = i.Member(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	var pod *platform.MemberPod
	if stored := c.pod(); stored != nil {
		pod = reducer.Pod(stored, nil)
	}
	if j, err = i.Pod(t.Context(), m, pod, j); err != nil {
		t.Fatal(err)
	}
	return j, i.Revision()
}

// Of a SandboxTemplate counts what its Pods are built from.
func TestWhatATemplateRendersTo(t *testing.T) {
	c := newCluster()
	byRef(c)
	before, err := Objects{}.Render(c.template())
	if err != nil {
		t.Fatal(err)
	}
	runtimes(c.template())
	volumes(c.template())
	if after, err := (Objects{}).Render(c.template()); err != nil || !after.Equal(before) {
		t.Errorf("it renders to %s with what its pools say, want %s: %v", after.JSON(), before.JSON(), err)
	}
	imaged(newer)(c.template())
	if after, err := (Objects{}).Render(c.template()); err != nil || after.Equal(before) {
		t.Errorf("it renders to %s with another image: %v", after.JSON(), err)
	}
}

func TestPodsThatCannotBeRead(t *testing.T) {
	for name, spec := range map[string]any{"no object": "x", "no list": map[string]any{"containers": "x"}} {
		c := newCluster()
		byRef(c)
		c.pod().Object["spec"] = spec
		if content, err := (Objects{}).ContentOfPod(c.pod()); err == nil {
			t.Errorf("%s: it is read as %s", name, content.JSON())
		}
		if j, _ := seen(t, c); j.Class != freshness.Unclassified {
			t.Errorf("%s: its member is %s", name, j.Class)
		}
	}
}

// What is kept of Pods is kept once for those of a pool.
func TestPodsOfAPoolHaveOneContent(t *testing.T) {
	c := newCluster()
	pod := mounted(c.pod(), "abcde", "n")
	other := c.pod().DeepCopy()
	other.SetName("o")
	other = mounted(other, "fghij", "another")
	differs := mounted(c.pod(), "abcde", "n")
	container(differs)["command"] = []any{"sh"}
	named := mounted(c.pod(), "abcde", "n")
	mounts, _, _ := unstructured.NestedSlice(named.Object, "spec", "volumes")
	mounts[0].(map[string]any)["persistentVolumeClaim"] = map[string]any{"claimName": "of-all"}
	set(named, mounts, "spec", "volumes")
	stored := pod.DeepCopy()
	for name, tc := range map[string]struct {
		pod  *unstructured.Unstructured
		want bool
	}{
		"another one of the pool": {other, true},
		"one that runs more":      {differs, false},
		"one of another claim":    {named, false},
	} {
		a, err := Objects{}.ContentOfPod(pod)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Objects{}.ContentOfPod(tc.pod)
		if err != nil {
			t.Fatal(err)
		}
		if a.Equal(b) != tc.want {
			t.Errorf("%s: the content is equal: %t, want %t", name, !tc.want, tc.want)
		}
	}
	r := platform.NewReducer(Objects{})
	if kept := r.Pod(pod, nil); !r.Pod(mounted(c.pod(), "fghij", "n"), nil).SameButVersion(kept) {
		t.Error("what two pods of a pool run is kept twice")
	}
	if diff := cmp.Diff(stored, pod); diff != "" {
		t.Errorf("the pod that was read has changed:\n%s", diff)
	}
}
