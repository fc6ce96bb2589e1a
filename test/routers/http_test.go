package routers

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/agent-sandbox/sandbox-router/cache"
	"sigs.k8s.io/agent-sandbox/sandbox-router/config"
	"sigs.k8s.io/agent-sandbox/sandbox-router/proxy"

	"github.com/freshbind/freshbind/routes/gatewaytest"
)

// knowsNone is a cache of a cluster without sandboxes.
type knowsNone struct{}

func (knowsNone) Get(types.UID) (cache.Entry, bool)            { return cache.Entry{}, false }
func (knowsNone) GetByName(string, string) (cache.Entry, bool) { return cache.Entry{}, false }
func (knowsNone) Invalidate(types.UID) bool                    { return false }
func (knowsNone) InvalidateByName(string, string, string) bool { return false }

// TestRouterFromOutside runs the black-box tests on the router's own handler. It
// takes no pushes, and lets every client name a Pod's address.
func TestRouterFromOutside(t *testing.T) {
	c := config.Defaults()
	// The canary is on a loopback address, which a Pod's never is.
	c.AllowLoopbackPodIP = true
	// Nothing is resolved here.
	c.ClusterDomain = "cluster.invalid"
	c.UpstreamMaxRetries = 0
	router := httptest.NewServer(proxy.NewHandler(proxy.Options{Config: &c, Cache: knowsNone{}, Logger: logr.Discard()}))
	defer router.Close()
	canary, err := gatewaytest.NewCanary("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = canary.Close() }()
	outcomes, err := gatewaytest.Run(t.Context(), gatewaytest.Options{Canary: canary, Gateway: gatewaytest.Gateway{
		ProbeURL: router.URL,
		ProbeHeader: http.Header{
			proxy.HeaderSandboxID: {"{name}"}, proxy.HeaderSandboxNamespace: {"{namespace}"}, proxy.HeaderSandboxPort: {"{port}"},
		},
		Peer: &http.Client{}, Anyone: &http.Client{}, Timeout: time.Minute,
	}})
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]string{}
	for _, o := range outcomes {
		if o.Result == gatewaytest.Failed {
			failed[o.Test] = o.Found
		}
	}
	want := map[string]string{"client-names-address": "with the header X-Sandbox-Pod-Ip a request arrives at the address that it names"}
	if diff := cmp.Diff(want, failed); diff != "" {
		t.Errorf("failed tests (-want +got):\n%s", diff)
	}
}
