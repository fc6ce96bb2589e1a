package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fakekruise"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
)

// kruisePlay is the first act, with OpenKruise Agents.
type kruisePlay struct {
	options
	*stage
	out       io.Writer
	client    dynamic.Interface
	kube      kubernetes.Interface
	recording *scenario.Recording
	refused   scenario.Refused
}

// kruiseSides are the namespaces: only the second one is guarded.
var kruiseSides = []string{"unguarded", "guarded"}

// runKruise plays it and tells whether it showed what it should.
func runKruise(ctx context.Context, o options, out io.Writer) (shown bool, err error) {
	start := time.Now()
	p := &kruisePlay{options: o, stage: &stage{timeout: builtTimeout}, out: out}
	defer func() {
		if left := p.close(ctx); left != nil && err == nil {
			err = &cleanupError{left}
		}
	}()
	if err := p.build(ctx); err != nil {
		return false, err
	}
	ctx, cancel := scenario.Supervise(ctx, p.failed)
	defer cancel()
	if p.recording, err = scenario.Record(ctx, p.admin); err != nil {
		return false, err
	}
	if err := p.open(ctx); err != nil {
		return false, err
	}
	for number := range p.rounds {
		if err := p.round(ctx, number+1); err != nil {
			return false, err
		}
	}
	result, err := p.conclude(ctx)
	if err != nil {
		return false, err
	}
	failures := result.failures()
	for _, line := range failures {
		p.say("not shown: %s", line)
	}
	if p.keepDir = len(failures) > 0; p.keepDir {
		p.say("logs are kept in %s", p.dir)
	}
	p.say("took %.0f s", time.Since(start).Seconds())
	p.say("%s", result.lastLine())
	if o.keep {
		p.say("all of it runs until Ctrl-C: %s get sandboxclaims,sandboxes -A", p.kubectl)
		<-ctx.Done()
	}
	return len(failures) == 0, nil
}

func (p *kruisePlay) say(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format+"\n", args...) }

// build starts a control plane, the double and Freshbind.
func (p *kruisePlay) build(ctx context.Context) error {
	if err := p.makeDir(); err != nil {
		return err
	}
	start := time.Now()
	cluster, err := controlplane.Start(ctx, controlplane.Options{Dir: p.dir, Log: os.Stderr, Nodes: 2})
	if err != nil {
		return err
	}
	p.later(func(context.Context) error { return cluster.Stop() })
	p.admin, p.failed = cluster.Config(), cluster.Err
	p.kubectl = "kubectl --kubeconfig " + cluster.KubeconfigPath()
	if p.client, err = dynamic.NewForConfig(p.admin); err != nil {
		return err
	}
	if p.kube, err = kubernetes.NewForConfig(p.admin); err != nil {
		return err
	}
	if err := p.guarding(ctx, cluster); err != nil {
		return err
	}
	if err := p.double(ctx, cluster); err != nil {
		return err
	}
	versions, err := cluster.Versions(ctx)
	if err != nil {
		return err
	}
	p.say("control plane  etcd %s, kube-apiserver %s, kwok %s at %s; all up in %.0f s", versions.Etcd, versions.Kubernetes, versions.Kwok, p.admin.Host, time.Since(start).Seconds())
	p.say("upstream       NOT the real OpenKruise Agents, which no Go module has: a double that sends the same writes (test/fakekruise); it sees SandboxSets %.1f s late", p.lag.Seconds())
	p.say("freshbind      enforces in namespace guarded (%s=%s) and looks on in unguarded (no label)", settings.EnforcementKey, settings.Enforce)
	return nil
}

func (p *kruisePlay) guarding(ctx context.Context, cluster *controlplane.Cluster) error {
	identity, err := cluster.User(fixture.User, "system:serviceaccounts", "system:serviceaccounts:freshbind-system", "system:authenticated")
	if err != nil {
		return err
	}
	p.guard, err = scenario.StartGuard(ctx, os.Stderr, fixture.Options{Admin: p.admin, Identity: identity, Dir: p.dir, Args: []string{"--platform-kruise"}})
	if err != nil {
		return err
	}
	p.later(func(context.Context) error { return p.guard.Close() })
	if err := p.guard.InstallFor(ctx, kruise.Admission(), kruise.Rights()...); err != nil {
		return err
	}
	// It may read the kinds before they are there.
	if err := cluster.InstallCRDs(ctx, fakekruise.CRDs()...); err != nil {
		return err
	}
	for i, side := range kruiseSides {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: side}}
		if i > 0 {
			ns.Labels = map[string]string{settings.EnforcementKey: string(settings.Enforce)}
		}
		if _, err := p.kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create namespace %s: %w", side, err)
		}
	}
	return nil
}

func (p *kruisePlay) double(ctx context.Context, cluster *controlplane.Cluster) error {
	cfg, err := cluster.User(fakekruise.ControllerUser, "system:masters", "system:authenticated")
	if err != nil {
		return err
	}
	proxy, err := cluster.NewProxy(0)
	if err != nil {
		return err
	}
	proxy.SetDelay(fakekruise.Group, fakekruise.Sets.Resource, p.lag)
	return fakekruise.StartControllers(ctx, proxy.Config(cfg), fakekruise.Options{})
}

func (p *kruisePlay) object(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": fakekruise.Sets.GroupVersion().String(), "kind": kind, "spec": spec}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func podTemplate(image string) map[string]any {
	return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}}}
}

// open makes the same SandboxSet in both namespaces, once the API server asks Freshbind.
func (p *kruisePlay) open(ctx context.Context) error {
	err := scenario.Poll(ctx, guardWithin, func(ctx context.Context) (bool, error) {
		probe := p.object("Sandbox", kruiseSides[1], "probe", map[string]any{"template": podTemplate(p.image(0))})
		probe.SetLabels(map[string]string{kruise.Group + "/sandbox-claimed": "true", kruise.Group + "/sandbox-pool": "probe"})
		probe.SetAnnotations(map[string]string{kruise.Group + "/owner": "nobody"})
		_, err := p.client.Resource(fakekruise.Sandboxes).Namespace(kruiseSides[1]).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil, nil
	})
	if err != nil {
		return fmt.Errorf("webhooks in force in %s: %w", kruiseSides[1], err)
	}
	for _, side := range kruiseSides {
		set := p.object("SandboxSet", side, poolName, map[string]any{"replicas": int64(size), "template": podTemplate(p.image(0))})
		set.SetAnnotations(map[string]string{settings.StrategyKey: string(scenario.Recreate)})
		if _, err := p.client.Resource(fakekruise.Sets).Namespace(side).Create(ctx, set, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create sandboxset in %s: %w", side, err)
		}
	}
	return nil
}

// round edits two SandboxSets at rest, and makes a burst of claims at once.
func (p *kruisePlay) round(ctx context.Context, number int) error {
	from, to := p.image(number-1), p.image(number)
	for _, side := range kruiseSides {
		if err := p.rest(ctx, side, from); err != nil {
			return err
		}
	}
	p.say("round %d/%d  sandboxset %s: image %s -> %s, then %d claims at once", number, p.rounds, poolName, from, to, size)
	names := scenario.Names(fmt.Sprintf("c%d-", number), size)
	took := map[string]time.Duration{}
	for _, side := range kruiseSides {
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}}`, to)
		if _, err := p.client.Resource(fakekruise.Sets).Namespace(side).Patch(ctx, poolName, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("edit sandboxset in %s: %w", side, err)
		}
		start := time.Now()
		for _, name := range names {
			claim := p.object("SandboxClaim", side, name, map[string]any{"templateName": poolName, "replicas": int64(1)})
			if _, err := p.client.Resource(fakekruise.Claims).Namespace(side).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create claim %s/%s: %w", side, name, err)
			}
		}
		if err := p.completed(ctx, side, number*size); err != nil {
			return err
		}
		took[side] = time.Since(start)
	}
	return p.report(ctx, fmt.Sprintf("c%d-", number), took)
}

// rest waits until a SandboxSet has as many ready members of the image as it wants.
func (p *kruisePlay) rest(ctx context.Context, side, image string) error {
	err := scenario.Poll(ctx, p.timeout, func(ctx context.Context) (bool, error) {
		boxes, err := p.client.Resource(fakekruise.Sandboxes).Namespace(side).List(ctx, metav1.ListOptions{LabelSelector: kruise.Group + "/sandbox-claimed=false"})
		if err != nil {
			return false, err
		}
		n := 0
		for i := range boxes.Items {
			containers, _, _ := unstructured.NestedSlice(boxes.Items[i].Object, "spec", "template", "spec", "containers")
			ip, _, _ := unstructured.NestedString(boxes.Items[i].Object, "status", "podInfo", "podIP")
			first, _ := containers[0].(map[string]any)
			if ip != "" && first["image"] == image {
				n++
			}
		}
		return n == size, nil
	})
	if err != nil {
		return fmt.Errorf("pool %s/%s with %d members of %s: %w", side, poolName, size, image, err)
	}
	return nil
}

// completed waits until as many SandboxClaims are, with or without what they asked for.
func (p *kruisePlay) completed(ctx context.Context, side string, want int) error {
	err := scenario.Poll(ctx, p.timeout, func(ctx context.Context) (bool, error) {
		claims, err := p.client.Resource(fakekruise.Claims).Namespace(side).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		n := 0
		for i := range claims.Items {
			if phase, _, _ := unstructured.NestedString(claims.Items[i].Object, "status", "phase"); phase == "Completed" {
				n++
			}
		}
		return n == want, nil
	})
	if err != nil {
		return fmt.Errorf("%d completed claims in %s: %w", want, side, err)
	}
	return nil
}

// report prints one line for each side.
func (p *kruisePlay) report(ctx context.Context, prefix string, took map[string]time.Duration) error {
	judged, err := p.recording.Judge(ctx)
	if err != nil {
		return err
	}
	text, err := p.guard.Metrics(ctx)
	if err != nil {
		return fmt.Errorf("ask freshbind what it refused: %w", err)
	}
	now, err := scenario.ParseRefused(text)
	if err != nil {
		return err
	}
	since := now.Minus(p.refused)
	p.refused = now
	for i, side := range kruiseSides {
		var refused *scenario.Refused
		if i > 0 {
			refused = &since
		}
		p.say("%s", roundLine(side, ofRound(judged.Binds, side, prefix), took[side], refused))
	}
	return nil
}

// conclude prints what was shown.
func (p *kruisePlay) conclude(ctx context.Context) (kruiseOutcome, error) {
	judged, err := p.recording.Judge(ctx)
	if err != nil {
		return kruiseOutcome{}, err
	}
	result := kruiseOutcome{outcome{
		unguarded: row{side: kruiseSides[0], Summary: judged.Namespace(kruiseSides[0]), ghosts: unknown},
		guarded:   row{side: kruiseSides[1], Summary: judged.Namespace(kruiseSides[1]), ghosts: unknown},
		claims:    p.rounds * size, lost: len(judged.EventGaps), unsettled: judged.Unsettled,
	}}
	p.say("judged from the watch history (what was stored when each claim was created, what its sandbox runs), not from labels; ghosts are not looked for here")
	if err := writeTable(p.out, result.unguarded, result.guarded); err != nil {
		return result, err
	}
	p.say("%s", p.priceLine(result.unguarded, result.guarded))
	if binds := stale(judged.Findings); len(binds) > 0 {
		p.say("first stale bind in full")
		for _, line := range bindInFull(binds[0]) {
			p.say("%s", line)
		}
	}
	return result, nil
}

// kruiseOutcome is one for which nobody has looked for ghosts.
type kruiseOutcome struct{ outcome }

func (o kruiseOutcome) failures() []string {
	seen := o.outcome
	seen.guarded.ghosts = 0
	return seen.failures()
}
