package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"
)

var testConfig = Config{
	URL: "https://10.0.0.1:443/", CAFile: "/ca.crt", ServerName: "freshbind.freshbind-system.svc", Timeout: time.Second,
	Weight: 10, Ignorable: true, SchedulerName: "freshbind-scheduler", LeaseNamespace: "freshbind-system",
}

var testExtender = configv1.Extender{
	URLPrefix: "https://10.0.0.1:443/scheduler", FilterVerb: "filter", PreemptVerb: "preempt", PrioritizeVerb: "prioritize", Weight: 10,
	EnableHTTPS: true, TLSConfig: &configv1.ExtenderTLSConfig{CAFile: "/ca.crt", ServerName: "freshbind.freshbind-system.svc"},
	HTTPTimeout: metav1.Duration{Duration: time.Second}, NodeCacheCapable: true, Ignorable: true,
}

// strictly decodes as kube-scheduler does, which refuses fields that it does not
// know. What is printed here has only fields that 1.30 knows as well.
func strictly(t *testing.T, config map[string]any) *configv1.KubeSchedulerConfiguration {
	t.Helper()
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(configv1.SchemeGroupVersion, &configv1.KubeSchedulerConfiguration{})
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	obj, _, err := decoder.Decode(text, nil, nil)
	if err != nil {
		t.Fatalf("kube-scheduler refuses the configuration: %v\n%s", err, text)
	}
	decoded, ok := obj.(*configv1.KubeSchedulerConfiguration)
	if !ok {
		t.Fatalf("decoded %T", obj)
	}
	return decoded
}

func TestStanza(t *testing.T) {
	config := testConfig.Stanza()
	config["apiVersion"], config["kind"] = "kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration"
	if diff := cmp.Diff([]configv1.Extender{testExtender}, strictly(t, config).Extenders); diff != "" {
		t.Errorf("extenders (-want,+got):\n%s", diff)
	}
}

func TestSecondSchedulersConfiguration(t *testing.T) {
	got := strictly(t, testConfig.SecondScheduler())
	if diff := cmp.Diff([]configv1.Extender{testExtender}, got.Extenders); diff != "" {
		t.Errorf("extenders (-want,+got):\n%s", diff)
	}
	if len(got.Profiles) != 1 || got.Profiles[0].SchedulerName == nil || *got.Profiles[0].SchedulerName != "freshbind-scheduler" {
		t.Errorf("profiles %v, want one, freshbind-scheduler: another would take the cluster's pods", got.Profiles)
	}
	lease := got.LeaderElection
	if lease.LeaderElect == nil || !*lease.LeaderElect || lease.ResourceName != "freshbind-scheduler" || lease.ResourceNamespace != "freshbind-system" {
		t.Errorf("leader election %+v, want a lease of its own", lease)
	}
}
