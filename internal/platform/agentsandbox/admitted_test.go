package agentsandbox

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

// What admission adds to a Pod does not make it another one; what nobody's
// admission adds, and what differs, does.
func TestWhatAdmissionAdds(t *testing.T) {
	type object = map[string]any
	type list = []any
	const c = "c"
	limits := func(values object) object { return object{"limits": values} }
	both := func(requests, limits object) object { return object{"requests": requests, "limits": limits} }
	toleration := func(key string) object { return object{"key": key, "operator": "Exists", "effect": "NoSchedule"} }
	notReady := object{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(300)}
	ranger := func(message string) func(*builders.Pod) {
		return func(p *builders.Pod) { p.Annotation("kubernetes.io/limit-ranger", "LimitRanger plugin set: "+message) }
	}
	set := func(value any, path ...string) func(*builders.Pod) {
		return func(p *builders.Pod) { p.Set(value, append([]string{"spec"}, path...)...) }
	}
	inContainer := func(key string, value any) func(*builders.Pod) {
		return func(p *builders.Pod) {
			containers, _, _ := unstructured.NestedSlice(p.Obj().Object, "spec", "containers")
			containers[0].(object)[key] = value
			p.Set(containers, "spec", "containers")
		}
	}
	edited := func(p *builders.Pod) { p.Generation(2) }
	kata := func(tpl *builders.Template) { tpl.PodSpec("kata", "runtimeClassName") }
	plain := func(*builders.Template) {}
	resources := func(r object) func(*builders.Template) {
		return func(tpl *builders.Template) {
			tpl.PodSpec(list{object{"name": c, "image": "i", "resources": r}}, "containers")
		}
	}
	type changes = []func(*builders.Pod)
	cases := map[string]struct {
		template func(*builders.Template)
		pod      changes
		want     bool
	}{
		"overhead":                            {kata, changes{set(object{"memory": "64Mi"}, "overhead")}, true},
		"nodeSelector of a RuntimeClass":      {kata, changes{set(object{"kata": "yes"}, "nodeSelector")}, true},
		"nodeSelector of nobody":              {plain, changes{set(object{"kata": "yes"}, "nodeSelector")}, false},
		"nodeSelector once a gate was off":    {plain, changes{edited, set(object{"zone": "a"}, "nodeSelector")}, true},
		"affinity once a gate was off":        {plain, changes{edited, set(object{"nodeAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{}}}, "affinity")}, true},
		"affinity of nobody":                  {plain, changes{set(object{"nodeAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{}}}, "affinity")}, false},
		"gates":                               {plain, changes{set(list{object{"name": "example.com/wait"}}, "schedulingGates")}, true},
		"the template's gates are off":        {func(tpl *builders.Template) { tpl.PodSpec(list{object{"name": "example.com/wait"}}, "schedulingGates") }, changes{edited, func(p *builders.Pod) { p.Unset("spec", "schedulingGates") }}, true},
		"another RuntimeClass":                {kata, changes{set("gvisor", "runtimeClassName")}, false},
		"toleration of a RuntimeClass":        {kata, changes{set(list{notReady, toleration("kata")}, "tolerations")}, true},
		"toleration of nobody":                {plain, changes{set(list{notReady, toleration("kata")}, "tolerations")}, false},
		"toleration of everything":            {plain, changes{set(list{object{"operator": "Exists"}}, "tolerations")}, false},
		"default priority class":              {plain, changes{set("standard", "priorityClassName"), set(int64(1000), "priority"), set("Never", "preemptionPolicy")}, true},
		"another priority class":              {func(tpl *builders.Template) { tpl.PodSpec("low", "priorityClassName") }, changes{set("high", "priorityClassName")}, false},
		"requests of a LimitRange":            {plain, changes{inContainer("resources", both(object{"cpu": "100m", "memory": "1Gi"}, object{"memory": "2Gi"})), ranger("cpu, memory request for container " + c + "; memory limit for container " + c)}, true},
		"requests of nobody":                  {plain, changes{inContainer("resources", both(object{"cpu": "100m"}, nil))}, false},
		"more than the LimitRange set":        {plain, changes{inContainer("resources", both(object{"cpu": "100m", "memory": "1Gi"}, nil)), ranger("cpu request for container " + c)}, false},
		"set for another container":           {plain, changes{inContainer("resources", both(object{"cpu": "100m"}, nil)), ranger("cpu request for container other")}, false},
		"set for an init container":           {plain, changes{inContainer("resources", both(object{"cpu": "100m"}, nil)), ranger("cpu request for init container " + c)}, false},
		"too long to be read":                 {plain, changes{inContainer("resources", both(object{"cpu": "100m"}, nil)), ranger("cpu request for container " + c + strings.Repeat("; cpu request for container "+c, 4<<10/16))}, false},
		"not in its words":                    {plain, changes{inContainer("resources", both(object{"cpu": "100m"}, nil)), func(p *builders.Pod) { p.Annotation("kubernetes.io/limit-ranger", "cpu") }}, false},
		"requests like limits":                {resources(limits(object{"cpu": "1"})), changes{inContainer("resources", both(object{"cpu": "1000m"}, object{"cpu": "1"}))}, true},
		"requests unlike limits":              {resources(limits(object{"cpu": "1"})), changes{inContainer("resources", both(object{"cpu": "500m"}, object{"cpu": "1"}))}, false},
		"extended resource's toleration":      {resources(limits(object{"example.com/gpu": "1"})), changes{inContainer("resources", both(object{"example.com/gpu": "1"}, object{"example.com/gpu": "1"})), set(list{notReady, toleration("example.com/gpu")}, "tolerations")}, true},
		"toleration of one not asked for":     {resources(limits(object{"example.com/gpu": "1"})), changes{inContainer("resources", both(object{"example.com/gpu": "1"}, object{"example.com/gpu": "1"})), set(list{toleration("example.com/tpu")}, "tolerations")}, false},
		"toleration called as a resource":     {resources(limits(object{"cpu": "1"})), changes{inContainer("resources", both(object{"cpu": "1"}, object{"cpu": "1"})), set(list{toleration("cpu")}, "tolerations")}, false},
		"host ports in the node's network":    {func(tpl *builders.Template) { ports(tpl, true) }, changes{inContainer("ports", list{object{"containerPort": int64(80), "hostPort": int64(80), "protocol": "TCP"}})}, true},
		"another host port":                   {func(tpl *builders.Template) { ports(tpl, true) }, changes{inContainer("ports", list{object{"containerPort": int64(80), "hostPort": int64(81), "protocol": "TCP"}})}, false},
		"a host port in its own network":      {func(tpl *builders.Template) { ports(tpl, false) }, changes{inContainer("ports", list{object{"containerPort": int64(80), "hostPort": int64(80), "protocol": "TCP"}})}, false},
		"requests of the whole Pod":           {func(tpl *builders.Template) { tpl.PodSpec(object{"limits": object{"cpu": "2"}}, "resources") }, changes{set(object{"limits": object{"cpu": "2"}, "requests": object{"cpu": "2"}}, "resources")}, true},
		"requests of the whole Pod, no limit": {plain, changes{set(object{"requests": object{"cpu": "2"}}, "resources")}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			source := template()
			tc.template(source)
			member := builders.MakeMember(testPool, source.Obj()).Name("python-abc").Obj()
			built := builders.MakePod(member)
			for _, change := range tc.pod {
				change(built)
			}
			stored := built.Stored("node-1").Obj()
			pod, err := podOf(stored)
			if err != nil {
				t.Fatal(err)
			}
			allowed, err := (&Platform{}).podInjections(member, stored, revision.PathSet{})
			if err != nil {
				t.Fatal(err)
			}
			d := revision.Compare(content(t, member).PodOnly(), pod.Content, allowed)
			if got := len(d) == 0; got != tc.want {
				t.Errorf("equal is %t, want %t: %s", got, tc.want, revision.Summary(d, 10))
			}
		})
	}
}

func ports(tpl *builders.Template, hostNetwork bool) {
	tpl.PodSpec([]any{map[string]any{"name": "c", "image": "i", "ports": []any{map[string]any{"containerPort": int64(80), "protocol": "TCP"}}}}, "containers")
	tpl.PodSpec(hostNetwork, "hostNetwork")
}

// The stamp of a Pod that admission added to is its Sandbox's.
func TestStampOfAnAdmittedPod(t *testing.T) {
	source := builders.MakeTemplate("ns", "python").PodSpec("kata", "runtimeClassName").Obj()
	member, _ := running(source)
	rendered, err := RenderMember(source)
	if err != nil {
		t.Fatal(err)
	}
	pod := builders.MakePod(member).Set(map[string]any{"memory": "64Mi"}, "spec", "overhead").
		Set(map[string]any{"kata": "yes"}, "spec", "nodeSelector").Stored("node-1").Obj()
	stamp, err := newPlatform(newStore(testPool, source, member), history{source}).PodRevision(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	if stamp.Hash != rendered.Hash() {
		t.Errorf("stamped %s, want %s", stamp.Hash, rendered.Hash())
	}
}

// A Pod of the name that a cold start is about to have, whoever made it.
func TestColdStartsAdoptNothing(t *testing.T) {
	v2 := builders.MakeTemplate("ns", "python").Image("sandbox:v2").Obj()
	claim := builders.MakeClaim("ns", "c1").Obj()
	cold := builders.MakeColdStart(claim, v2).Obj()
	create, _ := (&Platform{}).Classify("CREATE", nil, cold)
	pod := func() *builders.Pod { return builders.MakePod(cold).Stored("node-1") }
	before := builders.SandboxFrom(cold).UID("before").RV(7).Obj()
	cases := map[string]struct {
		stored []*unstructured.Unstructured
		want   freshness.Reason
	}{
		"none there":                     {nil, freshness.Fresh},
		"orphaned":                       {[]*unstructured.Unstructured{pod().Owners().Obj()}, freshness.PodForeign},
		"planted, without labels":        {[]*unstructured.Unstructured{builders.MakePod(cold).Owners().NoLabel(builders.LabelNameHash).Obj()}, freshness.PodForeign},
		"on its way out":                 {[]*unstructured.Unstructured{pod().Owners(builders.ControllerRef(before)).Obj()}, freshness.PodForeign},
		"another controller's":           {[]*unstructured.Unstructured{pod().Owners(builders.ControllerRef(testPool)).Obj()}, freshness.PodForeign},
		"of the Sandbox that is there":   {[]*unstructured.Unstructured{before, pod().Owners(builders.ControllerRef(before)).Obj()}, freshness.Fresh},
		"of one before that":             {[]*unstructured.Unstructured{before, pod().Owners(builders.ControllerRef(builders.SandboxFrom(before).UID("older").Obj())).Obj()}, freshness.PodForeign},
		"of a Sandbox of another's name": {[]*unstructured.Unstructured{pod().Owners(builders.ControllerRef(builders.SandboxFrom(before).Name("other").Obj())).Obj()}, freshness.PodForeign},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := newPlatform(newStore(append(tc.stored, claim, testPool, v2)...), history{v2}).Snapshot(t.Context(), create)
			if err != nil {
				t.Fatal(err)
			}
			if v := freshness.Judge(f.Snapshot); v.Reason != tc.want {
				t.Errorf("judged %s (%s), want %s", v.Reason, v.Detail, tc.want)
			}
		})
	}
}

// A member that somebody makes by hand runs in no Pod that is there, either. Names that the
// API server draws for a pool's controller nobody knows before.
func TestBirthsAdoptNothing(t *testing.T) {
	v2 := builders.MakeTemplate("ns", "python").Image("sandbox:v2").Obj()
	byHand := builders.MakeMember(testPool, v2).Name("python-abc").Obj()
	byPool := builders.SandboxFrom(byHand).Annotation(settings.CreatedByKey, settings.CreatedByPool).Obj()
	before := builders.SandboxFrom(byHand).UID("before").RV(7).Obj()
	pod := func() *builders.Pod { return builders.MakePod(byHand).Stored("node-1") }
	cases := map[string]struct {
		made   *unstructured.Unstructured
		stored []*unstructured.Unstructured
		want   freshness.Reason
		read   bool
	}{
		"none there":                    {byHand, nil, freshness.Fresh, true},
		"orphaned":                      {byHand, []*unstructured.Unstructured{pod().Owners().Obj()}, freshness.PodForeign, true},
		"of the Sandbox that is there":  {byHand, []*unstructured.Unstructured{before, pod().Owners(builders.ControllerRef(before)).Obj()}, freshness.Fresh, true},
		"of a Pod that is not there":    {builders.SandboxFrom(byHand).PodName("absent").Obj(), nil, freshness.PodForeign, false},
		"made by the pool's controller": {byPool, []*unstructured.Unstructured{pod().Owners().Obj()}, freshness.Fresh, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store := newStore(append(tc.stored, testPool, v2)...)
			w, _ := (&Platform{}).Classify("CREATE", nil, tc.made)
			f, err := newPlatform(store, history{v2}).Snapshot(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			if v := freshness.Judge(f.Snapshot); v.Reason != tc.want {
				t.Errorf("judged %s (%s), want %s", v.Reason, v.Detail, tc.want)
			}
			// The namespace is read beside all else.
			_, _ = f.Namespace.Labels()
			if read := slices.Contains(store.read, "pod/python-abc"); read != tc.read {
				t.Errorf("its pod is read: %t, want %t", read, tc.read)
			}
		})
	}
}
