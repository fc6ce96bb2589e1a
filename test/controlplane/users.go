package controlplane

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// User makes a client certificate for a user, so that the API server sees them
// as it sees any other: authenticated by its own CA, not impersonated. The name
// may be a service account's (system:serviceaccount:NAMESPACE:NAME), with its
// groups given. The configuration is for the first API server; At changes that.
func (c *Cluster) User(name string, groups ...string) (*rest.Config, error) {
	pair, err := c.authority.client(name, groups)
	if err != nil {
		return nil, err
	}
	return c.config(0, pair), nil
}

// At returns a copy of cfg that talks to API server i.
func (c *Cluster) At(cfg *rest.Config, i int) *rest.Config {
	moved := rest.CopyConfig(cfg)
	moved.Host = c.servers[i].url()
	return moved
}

// KubeconfigPath is a kubeconfig of the cluster's admin.
func (c *Cluster) KubeconfigPath() string { return filepath.Join(c.dir, "kubeconfig") }

// WriteKubeconfig writes what cfg says about server, certificates and bearer
// token to path, for programs that want a file.
func (c *Cluster) WriteKubeconfig(cfg *rest.Config, path string) error {
	const name = "freshbind-test"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData, Token: cfg.BearerToken,
	}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// userKubeconfig makes a user and a kubeconfig for it below the cluster's folder.
func (c *Cluster) userKubeconfig(name string, groups ...string) (string, error) {
	cfg, err := c.User(name, groups...)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, "kubeconfig-"+fileName(name))
	return path, c.WriteKubeconfig(cfg, path)
}

// Versions are those of the running programs; empty where there is none.
type Versions struct {
	Etcd, Kubernetes, Kwok string
}

// Versions asks the programs, which need not be the pinned ones when
// KUBEBUILDER_ASSETS is set.
func (c *Cluster) Versions(ctx context.Context) (Versions, error) {
	client, err := discovery.NewDiscoveryClientForConfig(c.Config())
	if err != nil {
		return Versions{}, fmt.Errorf("make discovery client: %w", err)
	}
	kubernetes, err := client.ServerVersion()
	if err != nil {
		return Versions{}, fmt.Errorf("ask for the API server's version: %w", err)
	}
	etcd, err := c.etcdVersion(ctx)
	if err != nil {
		return Versions{}, err
	}
	versions := Versions{Etcd: "v" + etcd, Kubernetes: kubernetes.GitVersion}
	if program, ok := c.programs[Kwok]; ok {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return Versions{}, fmt.Errorf("read kwok's version: %w", err)
		}
		versions.Kwok = info.Main.Version
	}
	return versions, nil
}

func (c *Cluster) etcdVersion(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.etcdURL()+"/version", nil)
	if err != nil {
		return "", fmt.Errorf("ask for etcd's version: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask for etcd's version: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	var version struct {
		Server string `json:"etcdserver"`
	}
	if err := json.NewDecoder(response.Body).Decode(&version); err != nil {
		return "", fmt.Errorf("read etcd's version: %w", err)
	}
	return version.Server, nil
}
