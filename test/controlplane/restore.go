package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// Snapshot is what etcd had stored at some moment.
type Snapshot struct {
	// dir is a copy of its data.
	dir string
	// Revision is the resourceVersion that was the newest.
	Revision int64
}

// Snapshot copies what etcd has stored. It is frozen meanwhile, so that the copy is what
// a crash would leave behind at that moment.
func (c *Cluster) Snapshot(ctx context.Context) (*Snapshot, error) {
	revision, err := c.revision(ctx)
	if err != nil {
		return nil, fmt.Errorf("take snapshot of etcd: %w", err)
	}
	pid, ok := c.PID(Etcd)
	if !ok {
		return nil, errors.New("take snapshot of etcd: it does not run")
	}
	dir, err := os.MkdirTemp(c.dir, "snapshot-")
	if err != nil {
		return nil, fmt.Errorf("take snapshot of etcd: %w", err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("freeze etcd: %w", err)
	}
	err = os.CopyFS(dir, os.DirFS(c.etcdDir()))
	if err = errors.Join(err, syscall.Kill(pid, syscall.SIGCONT)); err != nil {
		return nil, fmt.Errorf("take snapshot of etcd: %w", err)
	}
	return &Snapshot{dir: dir, Revision: revision}, nil
}

// RestoreOptions say how a snapshot is restored.
type RestoreOptions struct {
	// Forward has resourceVersions go on after the newest one that clients know, and
	// all before it compacted, as etcdutl does with --bump-revision and
	// --mark-compacted. Without it they go back, and come once more.
	Forward bool
}

// Restore replaces what etcd has stored by a snapshot, as an operator does: all API
// servers are stopped meanwhile. Where resourceVersions go back, Kubernetes asks for a
// restart of everything with caches; then that is done with what the cluster itself has,
// which is kwok and what binds Pods. Clusters with other controllers have them restarted
// by nobody.
func (c *Cluster) Restore(ctx context.Context, s *Snapshot, o RestoreOptions) error {
	newest, err := c.revision(ctx)
	if err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	for i := range c.servers {
		if err := c.StopServer(i); err != nil {
			return fmt.Errorf("restore etcd: %w", err)
		}
	}
	if err := c.exchangeEtcd(ctx, s); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if o.Forward {
		if err := c.forward(ctx, newest); err != nil {
			return fmt.Errorf("restore etcd: %w", err)
		}
	}
	for i := range c.servers {
		if err := c.StartServer(ctx, i); err != nil {
			return fmt.Errorf("restore etcd: %w", err)
		}
	}
	if o.Forward || c.options.Nodes == 0 {
		return nil
	}
	return c.restartNodes()
}

func (c *Cluster) exchangeEtcd(ctx context.Context, s *Snapshot) error {
	if err := c.processOf(Etcd).Stop(); err != nil {
		return err
	}
	if err := os.RemoveAll(c.etcdDir()); err != nil {
		return err
	}
	if err := os.CopyFS(c.etcdDir(), os.DirFS(s.dir)); err != nil {
		return err
	}
	return c.startEtcd(ctx)
}

// restartNodes starts anew what keeps nodes alive and binds Pods.
func (c *Cluster) restartNodes() error {
	if err := c.processOf(Kwok).Stop(); err != nil {
		return err
	}
	if _, err := c.startKwok(); err != nil {
		return err
	}
	if c.stopBinder == nil {
		return nil
	}
	c.stopBinder()
	return c.startBinder()
}

func (c *Cluster) etcdDir() string { return filepath.Join(c.dir, "etcd") }

// ahead is how far resourceVersions go on after the newest one.
const ahead = 100

// forward writes until resourceVersions are newer than the newest one that was, and
// has all before that forgotten.
func (c *Cluster) forward(ctx context.Context, newest int64) error {
	at, err := c.revision(ctx)
	if err != nil {
		return err
	}
	var writes errgroup.Group
	writes.SetLimit(32)
	for range max(0, newest+ahead-at) {
		writes.Go(func() error { _, err := c.askEtcd(ctx, "put", map[string]any{"key": []byte("forward")}); return err })
	}
	if err := writes.Wait(); err != nil {
		return err
	}
	if at, err = c.revision(ctx); err != nil {
		return err
	}
	_, err = c.askEtcd(ctx, "compaction", map[string]any{"revision": strconv.FormatInt(at, 10)})
	return err
}

// revision is the newest one, which is the newest resourceVersion.
func (c *Cluster) revision(ctx context.Context) (int64, error) {
	return c.askEtcd(ctx, "range", map[string]any{"key": []byte("any")})
}

// askEtcd calls a method of etcd's KV service, and returns the revision at which it
// answers.
func (c *Cluster) askEtcd(ctx context.Context, method string, message any) (revision int64, err error) {
	// etcd's gateway for JSON takes bytes in base64 (etcd, api/etcdserverpb/rpc.proto).
	body, err := json.Marshal(message)
	if err != nil {
		return 0, fmt.Errorf("encode %s: %w", method, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.etcdURL()+"/v3/kv/"+method, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	response, err := c.etcdClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	if err != nil {
		return 0, err
	}
	var parsed struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
	}
	if err := json.Unmarshal(answer, &parsed); err != nil {
		return 0, fmt.Errorf("read answer: %w", err)
	}
	return parsed.Header.Revision, nil
}
