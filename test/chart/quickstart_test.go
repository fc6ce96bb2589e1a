package chart

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/upstream"
)

// tutorial runs the blocks of docs/quickstart.md in a shell like a newcomer's.
type tutorial struct {
	*world
	t   *testing.T
	env []string
	dir string
}

// chapter is one block of the page, known by its first line.
type chapter struct {
	first string
	// instead is done in place of the block, where this machine has no containers,
	// or no network.
	instead func(t *tutorial)
	// want is what the block prints in the end. Events, histories and caches arrive
	// when they arrive, so it is run again until it does.
	want []string
	// fails: the block's last command is refused.
	fails bool
	// then is done after it.
	then func(t *tutorial)
}

var chapters = []chapter{
	{first: "kind create cluster", instead: func(*tutorial) {}}, // The world has all of it.
	{first: "make build image", instead: func(*tutorial) {}},    // Built already; hack/release tests the image.
	{first: "helm install freshbind", want: []string{"STATUS: deployed"}, then: func(t *tutorial) { t.run(t.t) }},
	{first: "kubectl create namespace quickstart", want: []string{"namespace/quickstart labeled"}},
	{first: "kubectl apply -n quickstart", want: []string{"sandboxtemplate.extensions.agents.x-k8s.io/python ", "sandboxwarmpool.extensions.agents.x-k8s.io/python "}},
	{first: "kubectl freshbind rollout status", want: []string{"3 of 3"}},
	{first: "kubectl freshbind rollout history", want: []string{"\n1 ", "yes"}},
	{first: "kubectl scale deployment agent-sandbox-controller -n agent-sandbox-system --replicas=0", instead: (*tutorial).stopUpstream},
	{first: "kubectl freshbind rollout pause", want: []string{"python paused"}},
	{first: "kubectl patch sandboxtemplate", want: []string{"sandboxtemplate.extensions.agents.x-k8s.io/python patched"}},
	{first: "kubectl freshbind get members", want: []string{"Stale", "StaleRevision"}},
	{first: "members=$(kubectl freshbind get members", fails: true, want: []string{`admission webhook "bind.freshbind.dev" denied the request`, "StaleRevision", "python:3.13-slim"}},
	{first: "kubectl freshbind explain claim alice", want: []string{"StaleRevision", "python:3.13-slim"}},
	{first: "kubectl scale deployment agent-sandbox-controller -n agent-sandbox-system --replicas=1", instead: (*tutorial).startUpstream},
	{first: "kubectl freshbind rollout resume", want: []string{"python resumed"}},
	{first: "kubectl wait sandboxclaim/alice", want: []string{"condition met", "FRESH"}},
	{first: "kubectl delete namespace quickstart", want: []string{`namespace "quickstart" deleted`}},
	{first: "helm uninstall freshbind", instead: func(t *tutorial) { t.leaveInOrder(t.t) }}, // As it is, with somebody who plays the kubelet.
	{first: "kind delete cluster", instead: func(*tutorial) {}},
}

// Who follows the quick start sees what it says.
func TestQuickStart(t *testing.T) {
	w := sharedWorld(t)
	page, err := os.ReadFile(filepath.Join(repository(t), "docs", "quickstart.md"))
	w.must(t, err)
	var blocks, firsts []string
	for _, m := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		blocks, firsts = append(blocks, m[1]), append(firsts, strings.SplitN(m[1], "\n", 2)[0])
	}
	var known []string
	for i, c := range chapters {
		if i < len(firsts) && strings.HasPrefix(firsts[i], c.first) {
			known = append(known, firsts[i])
			continue
		}
		known = append(known, c.first)
	}
	if diff := cmp.Diff(known, firsts); diff != "" {
		t.Fatalf("blocks of docs/quickstart.md (-this test's,+the page's):\n%s", diff)
	}
	w.cleanNamespace(t)
	s := w.newcomer(t)
	for i, c := range chapters {
		if c.instead != nil {
			c.instead(s)
			continue
		}
		s.follow(c, blocks[i])
		if c.then != nil {
			c.then(s)
		}
	}
	w.nothingLeft(t)
}

// newcomer has the programs of the page on the PATH, and leaves nothing behind.
func (w *world) newcomer(t *testing.T) *tutorial {
	t.Helper()
	tools, err := controlplane.Tools(t.Context(), os.Stderr, controlplane.Kubectl)
	w.must(t, err)
	bin := t.TempDir()
	for name, program := range map[string]string{"kubectl": tools[controlplane.Kubectl], "helm": w.helm.program, "kubectl-freshbind": w.replicas[0].program} {
		w.must(t, os.Symlink(program, filepath.Join(bin, name)))
	}
	t.Cleanup(func() { w.uninstall(t) })
	s := &tutorial{world: w, t: t, dir: repository(t), env: append(os.Environ(),
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+w.cluster.KubeconfigPath(), "HOME="+t.TempDir())}
	t.Cleanup(func() {
		if out, _ := s.shell(context.Background(), "kubectl delete namespace quickstart --ignore-not-found"); t.Failed() {
			t.Log(out)
		}
	})
	return s
}

func (s *tutorial) shell(ctx context.Context, script string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// follow runs a block, and again if need be, until it has printed what it should:
// what was created by a run before is there in the next.
func (s *tutorial) follow(c chapter, block string) {
	s.t.Helper()
	output := ""
	s.eventually(s.t, c.first, func(context.Context) (string, bool) {
		ctx, cancel := context.WithTimeout(s.t.Context(), within)
		defer cancel()
		out, err := s.shell(ctx, block)
		output += out
		for _, want := range c.want {
			if !strings.Contains(output, want) {
				return fmt.Sprintf("%v, without %q:\n%s", err, want, out), false
			}
		}
		return fmt.Sprintf("%v:\n%s", err, out), c.fails == (err != nil)
	})
	s.t.Logf("%s\n%s", block, output)
}

// stopUpstream ends the controllers as a Deployment of no replicas does. Whatever
// comes of this test, the next one finds them again.
func (s *tutorial) stopUpstream() {
	s.t.Helper()
	s.t.Cleanup(s.startUpstream)
	s.must(s.t, s.guests.Stop())
	s.guests = nil
}

func (s *tutorial) startUpstream() {
	s.t.Helper()
	if s.guests != nil {
		return
	}
	guests, err := upstream.Start(context.WithoutCancel(s.t.Context()), s.cluster, upstream.Options{Version: "v1.0.3", Log: os.Stderr})
	s.must(s.t, err)
	s.guests = guests
}
