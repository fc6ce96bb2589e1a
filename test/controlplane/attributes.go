package controlplane

import "k8s.io/client-go/discovery"

// Keys of a test's attributes (testing.T.Attr), from which the page of coverage is made.
const (
	AttrKubernetes = "kubernetes"
	AttrRelease    = "agent-sandbox"
)

// T is what a testing.T can be told about itself.
type T interface {
	Helper()
	Attr(key, value string)
	Errorf(format string, args ...any)
}

// RanOn writes into the results of a test what it runs on: the version that the
// API server says it is, and agent-sandbox's release, "" where there is none.
func (c *Cluster) RanOn(t T, release string) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(c.Config())
	if err != nil {
		t.Errorf("make a client of discovery: %v", err)
		return
	}
	version, err := client.ServerVersion()
	if err != nil {
		t.Errorf("ask for the API server's version: %v", err)
		return
	}
	t.Attr(AttrKubernetes, version.GitVersion)
	if release != "" {
		t.Attr(AttrRelease, release)
	}
}
