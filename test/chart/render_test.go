package chart

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/scheduler"
)

// What the cluster of a rendering serves.
const (
	certManager = "--api-versions=cert-manager.io/v1/Certificate"
	mutating    = "--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
)

// ownSecret are values that need no cert-manager.
var ownSecret = set("certificates.source=Secret", "certificates.secret.name=tls", "certificates.secret.caBundle=PEM")

func helmForTest(t *testing.T) helm {
	t.Helper()
	h, err := buildHelm()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// render returns the objects that the chart makes of values.
func render(t *testing.T, args ...string) []*unstructured.Unstructured {
	t.Helper()
	h := helmForTest(t)
	out, err := h.run(t.Context(), append([]string{"template", release, h.chart}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, out)
}

func decode(t *testing.T, manifests string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &o.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

// find returns the object of a kind, of this name if one is given.
func find(objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kind && (name == "" || o.GetName() == name)
	})
	if i < 0 {
		return nil
	}
	return objects[i]
}

func TestConfigurationFileIsUnderstood(t *testing.T) {
	cases := map[string]struct {
		args   []string
		change func(*config.Configuration)
	}{
		"by default": {nil, func(c *config.Configuration) { c.Webhook.BindAddress = ":10250" }},
		"all of it": {
			set("namespaces={a,b}", "config.floors[0].namespaceSelector.matchLabels.tier=prod", "config.floors[0].minimumEnforcement=enforce",
				"config.selfTest.interval=1m", "config.selfTest.namespace=b", "config.replacementBudget=7", "config.revisions.digests=true",
				"ports.webhook=9443", "ports.health=10251", "config.platforms.kruise=true", "scheduling.mode=Extender", "scheduling.weights.image=3"),
			func(c *config.Configuration) {
				c.Namespaces, c.ReplacementBudget, c.Revisions.Digests = []string{"a", "b"}, 7, true
				c.Floors = []config.Floor{{MinimumEnforcement: string(settings.Enforce)}}
				c.SelfTest.Namespace, c.SelfTest.Interval.Duration = "b", c.SelfTest.Interval.Duration*2
				c.Webhook.BindAddress, c.Health.BindAddress = ":9443", ":10251"
				c.Platforms.Kruise = true
				c.Scheduling.Mode, c.Scheduling.Weights.Image = config.SchedulingExtender, 3
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var file corev1.ConfigMap
			object := find(render(t, append(tc.args, certManager)...), "ConfigMap", release)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &file); err != nil {
				t.Fatal(err)
			}
			got, err := config.Parse([]byte(file.Data["config.yaml"]))
			if err != nil {
				t.Fatal(err)
			}
			want := config.Default()
			want.Webhook.Certificate = config.Certificate{SecretName: "freshbind-serving", SecretNamespace: namespace}
			want.LeaderElection.Namespace, want.LeaderElection.Deployment = namespace, release
			tc.change(&want)
			for i := range want.Floors {
				want.Floors[i].NamespaceSelector = got.Floors[i].NamespaceSelector
			}
			if diff := cmp.Diff(marshal(t, want), marshal(t, got.Configuration)); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestSecondSchedulerIsConfiguredAsTheCodeSays(t *testing.T) {
	objects := render(t, append(set("scheduling.mode=SecondScheduler", "scheduling.kubeSchedulerImage=kube-scheduler:v1", "scheduling.schedulerName=warm"), certManager)...)
	text, _, _ := unstructured.NestedString(find(objects, "ConfigMap", "freshbind-scheduler").Object, "data", "config.yaml")
	var got map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := scheduler.Config{
		URL: "https://freshbind." + namespace + ".svc:443", CAFile: "/etc/freshbind/ca.crt", ServerName: "freshbind." + namespace + ".svc",
		Timeout: time.Second, Weight: 10, Ignorable: true, SchedulerName: "warm", LeaseNamespace: namespace,
	}.SecondScheduler()
	if diff := cmp.Diff(marshal(t, want), marshal(t, got)); diff != "" {
		t.Errorf("configuration (-code,+chart):\n%s", diff)
	}
	if find(objects, "Deployment", "freshbind-scheduler") == nil {
		t.Error("nobody reads the configuration")
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestValuesThatAreRefused(t *testing.T) {
	cases := map[string]struct {
		values []string
		want   []string
	}{
		"a misspelt key":       {[]string{"replica=3"}, []string{"replica", "not allowed"}},
		"a misspelt inner key": {[]string{"config.defaults.enforcment=enforce"}, []string{"enforcment", "not allowed"}},
		"a wrong value":        {[]string{"config.defaults.enforcement=strict"}, []string{"enforcement", "audit"}},
		"a wrong type":         {[]string{"replicas=many"}, []string{"replicas", "integer"}},
		"no replica":           {[]string{"replicas=0"}, []string{"replicas", "minimum"}},
		"a bad namespace":      {[]string{"namespaces={A}"}, []string{"namespaces", "pattern"}},
		"a floor with a typo":  {[]string{"config.floors[0].namespaceSelecto.a=b"}, []string{"namespaceSelecto"}},
		"an issuer of no name": {[]string{"certificates.certManager.issuerRef.kind=ClusterIssuer"}, []string{"issuerRef.name"}},
		"a Secret of no name":  {[]string{"certificates.source=Secret"}, []string{"certificates.secret"}},
		"two monitors":         {[]string{"metrics.serviceMonitor.enabled=true", "metrics.podMonitor.enabled=true"}, []string{"counted twice"}},
		"a monitor, no token":  {[]string{"metrics.secure=true", "metrics.podMonitor.enabled=true"}, []string{"metrics.secure", "metrics.serviceMonitor"}},
		"no scheduler image":   {[]string{"scheduling.mode=SecondScheduler"}, []string{"scheduling.kubeSchedulerImage"}},
		"resources misspelt":   {[]string{"resources.limts.memory=1Gi"}, []string{"resources", "limts"}},
		"no quantity":          {[]string{"resources.limits.memory=1 Gi"}, []string{"resources", "pattern"}},
		"a name of capitals":   {[]string{"fullnameOverride=Freshbind"}, []string{"fullnameOverride", "pattern"}},
		"a name of a Service":  {[]string{"fullnameOverride=9lives"}, []string{"fullnameOverride", "9lives", "begins with a letter"}},
		"no tag":               {[]string{"image.tag=v1 beta"}, []string{"image", "tag", "pattern"}},
		"a digest as a tag":    {[]string{"image.tag=sha256:00"}, []string{"image", "tag", "pattern"}},
		"a name too long":      {[]string{"serviceAccount.name=" + strings.Repeat("a", 254)}, []string{"serviceAccount", "maxLength"}},
		"a class with a slash": {[]string{"priorityClassName=a/b"}, []string{"priorityClassName", "pattern"}},
		"a label's value":      {[]string{"commonLabels.team=a b"}, []string{"commonLabels", "pattern"}},
		"a label's key":        {[]string{"podLabels.a b=c"}, []string{"propertyName", "a b"}},
		"a Secret to pull":     {[]string{"imagePullSecrets[0].name=A"}, []string{"imagePullSecrets", "pattern"}},
		"a duration of days":   {[]string{"config.gracePeriod=1d"}, []string{"gracePeriod", "pattern"}},
		"a negative duration":  {[]string{"config.gracePeriod=-1s"}, []string{"gracePeriod", "pattern"}},
		"two dots":             {[]string{"config.selfTest.interval=1..5s"}, []string{"interval", "pattern"}},
		"too often":            {[]string{"config.selfTest.interval=500ms"}, []string{"config.selfTest.interval", "at least 1s"}},
		"a view too young":     {[]string{"routes.maxAge=2.9s"}, []string{"routes.maxAge", "at least 3s"}},
		"sentinel too often":   {[]string{"sentinel.interval=999ms"}, []string{"sentinel.interval", "at least 1s"}},
		"sentinel too short":   {[]string{"sentinel.keep=59s"}, []string{"sentinel.keep", "at least 60s"}},
		"always renewed":       {[]string{"certificates.certManager.renewBefore=2160h"}, []string{"renewBefore", "renewed all the time"}},
		"a CA too short":       {[]string{"certificates.certManager.caDuration=1h"}, []string{"caDuration", "outlive its CA"}},
		"killed while it ends": {[]string{"config.gracePeriod=30s"}, []string{"terminationGracePeriodSeconds", "60s"}},
		"killed in a release":  {[]string{"config.releasePeriod=30s"}, []string{"terminationGracePeriodSeconds", "releasePeriod (30s)", "60s"}},
		"no time to release":   {[]string{"config.releasePeriod=999ms"}, []string{"config.releasePeriod", "at least 1s"}},
		"the kubelet's port":   {[]string{"hostNetwork=true"}, []string{"ports.webhook", "the kubelet's"}},
		"one port for two":     {[]string{"ports.metrics=10250"}, []string{"ports.metrics", "ports.webhook already"}},
		"profiles' port":       {[]string{"config.profiling.bindAddress=127.0.0.1:8081"}, []string{"profiling", "ports.health already"}},
		"routes' port":         {[]string{"routes.enabled=true", "routes.tokenSecret=t", "routes.port=8080"}, []string{"routes.port", "ports.metrics already"}},
		"routes' port, moved":  {[]string{"routes.enabled=true", "routes.tokenSecret=t", "ports.metrics=9543"}, []string{"routes.port", "9543", "ports.metrics already"}},
		"routes' health":       {[]string{"routes.enabled=true", "routes.tokenSecret=t", "ports.health=9543"}, []string{"routes.port", "ports.health already"}},
		"a test elsewhere":     {[]string{"namespaces={a}", "config.selfTest.namespace=b"}, []string{"config.selfTest.namespace", "not one of namespaces"}},
		"a registry's slash":   {[]string{"image.registry=r.example.com/"}, []string{"registry", "pattern"}},
		"a registry's scheme":  {[]string{"global.imageRegistry=https://r.example.com"}, []string{"imageRegistry", "pattern"}},
		"a tag twice":          {[]string{"image.repository=freshbind/freshbind:1"}, []string{"repository", "pattern"}},
		"a user misspelt":      {[]string{"podSecurityContext.runAsuser=1"}, []string{"podSecurityContext", "runAsuser"}},
		"a container's user":   {[]string{"securityContext.fsGroup=1"}, []string{"securityContext", "fsGroup"}},
		"a quota of nothing":   {[]string{"priorityQuota.pods=0"}, []string{"priorityQuota", "minimum"}},
		"no way out":           {[]string{"networkPolicy.egress.apiServerPorts[0]=0"}, []string{"apiServerPorts", "minimum"}},
		"traces to a path":     {[]string{"tracing.endpoint=http://collector:4317/v1/traces"}, []string{"endpoint", "pattern"}},
		"traces to no URL":     {[]string{"tracing.endpoint=collector:4317"}, []string{"endpoint", "pattern"}},
		"more than all":        {[]string{"tracing.samplingRatePerMillion=1000001"}, []string{"samplingRatePerMillion", "maximum"}},
		"names and no CA":      {[]string{"webhooks.clients.names={api}"}, []string{"webhooks.clients.names", "caBundle"}},
	}
	h := helmForTest(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := h.run(t.Context(), append([]string{"template", release, h.chart, certManager}, set(tc.values...)...)...)
			if err == nil {
				t.Fatal("was accepted")
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

// What is close to being refused and is not.
func TestValuesThatAreAccepted(t *testing.T) {
	for name, values := range map[string][]string{
		"durations":  {"config.gracePeriod=1m30.5s", "config.selfTest.interval=1000ms", "terminationGracePeriodSeconds=121", "routes.maxAge=3s", "sentinel.keep=1m"},
		"quantities": {"resources.limits.memory=1.5Gi", "resources.limits.cpu=2", "resources.requests.cpu=250m", "routes.resources.limits.memory=1e9"},
		"names":      {"fullnameOverride=fb", "serviceAccount.name=a.b-c", "priorityClassName=", "commonLabels.team=", "podLabels.a\\.b/c=D_e", "imagePullSecrets[0].name=r.s"},
		"ports":      {"ports.webhook=9443", "ports.metrics=10250", "config.profiling.bindAddress=127.0.0.1:6060"},
		"routes":     {"routes.enabled=true", "routes.tokenSecret=t", "routes.port=8080", "ports.metrics=9090"},
		"no routes":  {"routes.port=8080"},
		"namespaces": {"namespaces={a,b}", "config.selfTest.namespace=b"},
		"registries": {"image.registry=r-1.example.com:5000/mirror", "image.repository=a/b-c", "global.imageRegistry=localhost:5000", "global.storageClass=another-charts"},
		"users":      {"podSecurityContext.runAsUser=1000", "podSecurityContext.fsGroup=1", "securityContext.runAsUser=1000"},
	} {
		t.Run(name, func(t *testing.T) { render(t, append(set(values...), certManager)...) })
	}
}

func TestWithoutCertManagerTheChartSaysWhatToDo(t *testing.T) {
	h := helmForTest(t)
	_, err := h.run(t.Context(), "template", release, h.chart)
	if err == nil || !strings.Contains(err.Error(), "cert-manager is not installed") || !strings.Contains(err.Error(), "certificates.source=Secret") {
		t.Errorf("error is %v", err)
	}
	if o := find(render(t, ownSecret...), "Certificate", ""); o != nil {
		t.Errorf("a Secret of one's own, and still Certificate %s", o.GetName())
	}
}

// GitOps tools compare renderings: nothing may change by itself.
func TestRenderingIsRepeatable(t *testing.T) {
	h := helmForTest(t)
	args := append([]string{"template", release, h.chart}, ownSecret...)
	first, err := h.run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two renderings differ (-first,+second):\n%s", diff)
	}
}

func TestLint(t *testing.T) {
	h := helmForTest(t)
	for name, values := range map[string][]string{
		"defaults": nil, "own Secret": ownSecret,
		"everything": set("metrics.prometheusRule.enabled=true", "metrics.dashboard.enabled=true", "metrics.serviceMonitor.enabled=true", "metrics.secure=true", "namespaces={a}"),
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := h.run(t.Context(), append([]string{"lint", "--strict", "--quiet", h.chart}, values...)...); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
