package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	testPoll = 20 * time.Millisecond
	timeout  = 10 * time.Minute
)

func eventually(t *testing.T, what string, condition func() (bool, error)) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), testPoll, timeout, true,
		func(context.Context) (bool, error) { return condition() })
	if err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
}

func startCluster(t *testing.T, o Options) *Cluster {
	t.Helper()
	o.Log = os.Stderr
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Err(); err != nil {
			t.Error(err)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func clientFor(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestSharedEtcd runs what needs no fake nodes on one cluster of two servers.
func TestSharedEtcd(t *testing.T) {
	c := startCluster(t, Options{APIServers: 2, AuditLog: true, EtcdProxies: true})
	t.Run("servers see each other's writes", func(t *testing.T) { testServersShare(t, c) })
	t.Run("users are who they are", func(t *testing.T) { testUsers(t, c) })
	t.Run("CRDs are served everywhere", func(t *testing.T) { testCRDs(t, c) })
	t.Run("programs know their versions", func(t *testing.T) { testVersions(t, c) })
	t.Run("audit log", func(t *testing.T) { testAuditLog(t, c) })
	t.Run("proxy holds back one resource", func(t *testing.T) { testProxyHolds(t, c) })
	t.Run("proxy delays one resource", func(t *testing.T) { testProxyDelays(t, c) })
	t.Run("proxy delivers initial objects", func(t *testing.T) { testProxyInitial(t, c) })
	t.Run("proxy holds, cuts and refuses lists", func(t *testing.T) { testProxyLists(t, c) })
	t.Run("proxy refuses lists to some", func(t *testing.T) { testProxyListsOfSome(t, c) })
	t.Run("proxy holds requests", func(t *testing.T) { testProxyHoldsRequests(t, c) })
	t.Run("watches of etcd are held back", func(t *testing.T) { testEtcdHolds(t, c) })
	t.Run("proxy refuses strangers", func(t *testing.T) { testProxyStrangers(t, c) })
	t.Run("a server restarts at its address", func(t *testing.T) { testServerRestarts(t, c) })
	t.Run("etcd is restored", func(t *testing.T) { testRestore(t, c) })
	t.Run("stop leaves nothing", func(t *testing.T) { testStop(t, c) })
}

func testServersShare(t *testing.T, c *Cluster) {
	for from, to := range []int{1, 0} {
		name := fmt.Sprintf("written-at-%d", from)
		createConfigMap(t, clientFor(t, c.ServerConfig(from)), name)
		_, err := clientFor(t, c.ServerConfig(to)).CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Errorf("server %d does not see what server %d wrote: %v", to, from, err)
		}
	}
}

func createConfigMap(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func whoAmI(t *testing.T, cfg *rest.Config) authenticationv1.UserInfo {
	t.Helper()
	review, err := clientFor(t, cfg).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo
}

func testUsers(t *testing.T, c *Cluster) {
	const name = "system:serviceaccount:ns:controller"
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:ns"}
	user, err := c.User(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := c.NewProxy(1)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/kubeconfig"
	if err := c.WriteKubeconfig(proxy.Config(user), path); err != nil {
		t.Fatal(err)
	}
	fromFile, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	for how, cfg := range map[string]*rest.Config{
		"directly": user, "at server 1": c.At(user, 1), "through the proxy": proxy.Config(user), "by kubeconfig": fromFile,
	} {
		got := whoAmI(t, cfg)
		if got.Username != name {
			t.Errorf("%s: user %q, want %q", how, got.Username, name)
		}
		if diff := cmp.Diff(append(groups, "system:authenticated"), got.Groups); diff != "" {
			t.Errorf("%s: groups (-want,+got):\n%s", how, diff)
		}
		_, err := clientFor(t, cfg).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: listing secrets gave %v, want it forbidden", how, err)
		}
	}
}

func testCRD(group, plural, kind string) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	}
}

func testCRDs(t *testing.T, c *Cluster) {
	crd := testCRD("example.test", "things", "Thing")
	// The second time it exists already.
	for range 2 {
		if err := c.InstallCRDs(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
	}
	for i := range c.servers {
		client, err := dynamic.NewForConfig(c.ServerConfig(i))
		if err != nil {
			t.Fatal(err)
		}
		things := schema.GroupVersionResource{Group: "example.test", Version: "v1", Resource: "things"}
		if _, err := client.Resource(things).List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("server %d does not serve the CRD: %v", i, err)
		}
	}
}

func testVersions(t *testing.T, c *Cluster) {
	got, err := c.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, version := range map[string]string{"etcd": got.Etcd, "Kubernetes": got.Kubernetes} {
		if !strings.HasPrefix(version, "v") || strings.Count(version, ".") < 2 || strings.HasPrefix(version, "v0.0") {
			t.Errorf("version of %s is %q", what, version)
		}
	}
	if got.Kwok != "" {
		t.Errorf("version of kwok is %q, though it does not run", got.Kwok)
	}
}

func testAuditLog(t *testing.T, c *Cluster) {
	createConfigMap(t, clientFor(t, c.ServerConfig(1)), "audited")
	want := map[string]bool{"RequestReceived": true, "ResponseComplete": true}
	// The API server writes its log after it has answered.
	eventually(t, "both stages in the audit log", func() (bool, error) {
		return cmp.Equal(want, loggedStages(t, c.AuditLogPath(1))), nil
	})
}

// loggedStages are those of requests about config maps.
func loggedStages(t *testing.T, path string) map[string]bool {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stages := map[string]bool{}
	for line := range strings.Lines(string(content)) {
		if !strings.HasSuffix(line, "\n") {
			break // It is being written.
		}
		var event struct {
			Stage, Level, RequestURI string
			ObjectRef                struct{ Name string }
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("audit log line %q: %v", line, err)
		}
		if event.Level != "Metadata" {
			t.Fatalf("audit level %q, want Metadata", event.Level)
		}
		if strings.HasPrefix(event.RequestURI, "/api/v1/namespaces/default/configmaps") {
			stages[event.Stage] = true
		}
	}
	return stages
}

func testServerRestarts(t *testing.T, c *Cluster) {
	second := clientFor(t, c.ServerConfig(1))
	// The second stop finds it stopped.
	for range 2 {
		if err := c.StopServer(1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := second.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Fatal("the stopped server answers")
	}
	createConfigMap(t, clientFor(t, c.Config()), "meanwhile")
	for range 2 {
		if err := c.StartServer(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := second.CoreV1().ConfigMaps("default").Get(t.Context(), "meanwhile", metav1.GetOptions{}); err != nil {
		t.Errorf("the restarted server does not see what was written meanwhile: %v", err)
	}
}

// testStop comes last: it stops the cluster.
func testStop(t *testing.T, c *Cluster) {
	proxy, err := c.NewProxy(0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range c.processes {
		select {
		case <-p.Done():
		default:
			t.Errorf("%s still runs as process %d", p.Name, p.PID())
		}
	}
	if _, err := os.Stat(c.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", c.Dir(), err)
	}
	if _, err := c.Run("late", "/bin/true"); err == nil {
		t.Error("a program was started in a stopped cluster")
	}
	if _, err := clientFor(t, proxy.Config(c.Config())).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("the proxy of a stopped cluster answers")
	}
}

func TestStopsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	c, err := Start(ctx, Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for _, p := range c.processes {
		<-p.Done()
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.KubeconfigPath()); err != nil {
		t.Errorf("a folder that was given is not kept: %v", err)
	}
	if c, err := Start(ctx, Options{}); err == nil {
		t.Error("started under a context that had ended", c.Stop())
	}
}
