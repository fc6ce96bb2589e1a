package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/freshbind/freshbind/internal/doctor"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/platform/kruise"
)

// streamed: this API server lists in answer to a watch, others do not (KEP-3157).
const streamed = "API servers without streaming lists"

// rare are rights that these tests need not come to use, and when they are used.
var rare = map[string]string{
	"list namespaces": streamed, "list secrets": streamed, "list extensions.agents.x-k8s.io/sandboxtemplates": streamed,
	"list extensions.agents.x-k8s.io/sandboxwarmpools": streamed, "list agents.x-k8s.io/sandboxes": streamed, "list apps/controllerrevisions": streamed,
	"patch pods": "stamps that a Pod lacks",
	"watch pods": "members of agent-sandbox v0.1 and v0.2",
	"list pods":  "members of agent-sandbox v0.1 and v0.2",
	"get pods":   "a member's Pod, by its bind",
	"get nodes":  "a node that is about to go, by a bind", "list nodes": "rescheduling", "watch nodes": "rescheduling",
	"patch agents.x-k8s.io/sandboxes": "hiding, marking and stamping", "delete agents.x-k8s.io/sandboxes": "stale members",
	"get agents.x-k8s.io/sandboxes":                                       "a sandbox of a claim's",
	"patch agents.x-k8s.io/sandboxes/status":                              "offering a member again",
	"patch extensions.agents.x-k8s.io/sandboxclaims":                      "asking for another try",
	"list extensions.agents.x-k8s.io/sandboxclaims":                       "claims that wait",
	"get extensions.agents.x-k8s.io/sandboxclaims":                        "the claim of a bind",
	"patch extensions.agents.x-k8s.io/sandboxwarmpools":                   "a rollout's outcome",
	"get apps/controllerrevisions":                                        "a revision that somebody else wrote",
	"update apps/controllerrevisions":                                     "a revision that comes back",
	"delete apps/controllerrevisions":                                     "more revisions than the limit",
	"create events.k8s.io/events":                                         "something to say",
	"patch events.k8s.io/events":                                          "something to say again",
	"get secrets":                                                         "the serving certificate, which is watched",
	"patch admissionregistration.k8s.io/mutatingadmissionpolicies":        "from Kubernetes 1.36 on",
	"patch admissionregistration.k8s.io/mutatingadmissionpolicybindings":  "from Kubernetes 1.36 on",
	"delete admissionregistration.k8s.io/mutatingadmissionpolicies":       "from Kubernetes 1.36 on",
	"delete admissionregistration.k8s.io/mutatingadmissionpolicybindings": "from Kubernetes 1.36 on",
	"get admissionregistration.k8s.io/mutatingadmissionpolicies":          "from Kubernetes 1.36 on",
	"get admissionregistration.k8s.io/mutatingadmissionpolicybindings":    "from Kubernetes 1.36 on",
}

// What all tests of an installed chart had Freshbind ask the API server for is
// what the chart's roles grant: nothing was refused, nothing is granted in vain.
func TestRolesAreWhatIsUsed(t *testing.T) {
	if shared.w == nil {
		t.Skip("NOT TESTED: no test before this one has installed the chart")
	}
	used := map[string]bool{}
	for _, r := range shared.w.requests(t) {
		if r.ObjectRef.Resource == "" {
			continue
		}
		if r.forbidden() && !shared.w.wasAway(r.At) {
			t.Errorf("Freshbind may not do what it does: %s (%s)", r, r.URI)
		}
		used[r.Verb+" "+r.resource()] = true
	}
	var vain []string
	for _, right := range granted(t) {
		if _, known := rare[right]; !used[right] && !known {
			vain = append(vain, right)
		}
	}
	if len(vain) > 0 {
		t.Errorf("granted, never used, and not known to be rare:\n%s", strings.Join(vain, "\n"))
	}
}

// granted are the rights in the chart's roles, as verb and resource.
func granted(t *testing.T, values ...string) []string {
	t.Helper()
	return grantedTo(t, false, values...)
}

// grantedTo is granted, or the same of the roles of hooks.
func grantedTo(t *testing.T, hooks bool, values ...string) []string {
	t.Helper()
	var rights []string
	for _, o := range render(t, append(values, certManager, mutating)...) {
		var role rbacv1.ClusterRole
		if !slices.Contains([]string{"Role", "ClusterRole"}, o.GetKind()) || hooks == (o.GetAnnotations()["helm.sh/hook"] == "") {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights = append(rights, verb+" "+strings.TrimPrefix(rule.APIGroups[0]+"/"+resource, "/"))
				}
			}
		}
	}
	return rights
}

// Pods are deleted only where somebody asks for what needs it.
func TestTheRoleDeletesPodsWhereAValueSaysSo(t *testing.T) {
	for name, tc := range map[string]struct {
		values []string
		want   bool
	}{
		"by default":                  {nil, false},
		"with a second scheduler":     {set("scheduling.mode=SecondScheduler", "scheduling.kubeSchedulerImage=kube-scheduler:v1"), false},
		"with members that are Pods":  {set("legacy.barePods=true"), true},
		"after the second scheduler":  {set("legacy.secondScheduler=true"), true},
		"with both, in one namespace": {set("legacy.barePods=true", "legacy.secondScheduler=true", "namespaces={a}"), true},
	} {
		if got := slices.Contains(granted(t, tc.values...), "delete pods"); got != tc.want {
			t.Errorf("%s: the role deletes Pods: %t, want %t", name, got, tc.want)
		}
	}
}

// A platform that is not guarded any more can have members that are hidden.
func TestAnUninstallMayReleaseEveryPlatform(t *testing.T) {
	may := grantedTo(t, true)
	for _, kinds := range []platform.Kinds{agentsandbox.Objects{}.Kinds(), kruise.Objects{}.Kinds()} {
		for _, kind := range []platform.Kind{kinds.Member, kinds.Pool} {
			for _, verb := range []string{"list", "patch"} {
				if right := verb + " " + kind.Group + "/" + kind.Resource; !slices.Contains(may, right) {
					t.Errorf("the uninstall may not %s", right)
				}
			}
		}
	}
}

// A right that everybody would have to be told about has no place in the roles.
func TestRolesGrantNothingWide(t *testing.T) {
	for _, right := range granted(t) {
		if strings.Contains(right, "*") || strings.HasPrefix(right, "escalate") || strings.HasPrefix(right, "bind") || strings.HasPrefix(right, "impersonate") {
			t.Errorf("the chart grants %s", right)
		}
	}
	for _, o := range render(t, append(set("namespaces={a,b}"), certManager)...) {
		if o.GetKind() == "ClusterRoleBinding" && o.GetName() == release {
			t.Error("with namespaces named, the rights on pools and sandboxes are cluster-wide")
		}
	}
}

// The doctor checks an installation for the rights that the code needs: those,
// and what only the chart's objects call for, are what the chart grants.
func TestRolesAreWhatTheDoctorChecks(t *testing.T) {
	want := []string{"get secrets", "list secrets", "watch secrets"}
	for _, rule := range append([]rbacv1.PolicyRule{doctor.LeaseRights, doctor.DeploymentRights, doctor.SelfTestRights(agentsandbox.Objects{}.Kinds())}, doctor.Rights(agentsandbox.Objects{}.Kinds())...) {
		for _, verb := range rule.Verbs {
			want = append(want, verb+" "+strings.TrimPrefix(rule.APIGroups[0]+"/"+rule.Resources[0], "/"))
		}
	}
	got := slices.DeleteFunc(granted(t), func(right string) bool { return strings.Contains(right, "admissionregistration.k8s.io/") })
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("rights (-doctor,+chart):\n%s", diff)
	}
}

// OpenKruise Agents is read where a value says so, by the rights that the doctor checks.
func TestTheRoleReadsOpenKruiseAgentsWhereAValueSaysSo(t *testing.T) {
	var want []string
	for _, rule := range kruise.Rights() {
		for _, verb := range rule.Verbs {
			want = append(want, verb+" "+rule.APIGroups[0]+"/"+rule.Resources[0])
		}
	}
	without := granted(t)
	got := slices.DeleteFunc(granted(t, set("config.platforms.kruise=true")...), func(right string) bool { return slices.Contains(without, right) })
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights (-doctor,+chart):\n%s", diff)
	}
}
