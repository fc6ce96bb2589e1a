package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// simulateDifferences bounds how many differences one line lists.
const simulateDifferences = 3

// simulated is what is told of one document.
type simulated struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Stored: an object of this name exists.
	Stored bool `json:"stored"`
	// Says is the outcome in one line; Warnings are what the webhook would say.
	Says     string   `json:"says"`
	Warnings []string `json:"warnings,omitempty"`
	// Refused are the fields for which the write would be refused.
	Refused []string `json:"refused,omitempty"`

	// Before and After are template-spec-hashes, Difference what differs.
	Before     string          `json:"before,omitempty"`
	After      string          `json:"after,omitempty"`
	Difference string          `json:"difference,omitempty"`
	Pools      []simulatedPool `json:"pools,omitempty"`
	// Outcome is what a claim gets.
	Outcome advice.Outcome `json:"outcome,omitempty"`
}

// simulatedPool counts the idle members of one pool.
type simulatedPool struct {
	Name        string             `json:"name"`
	Mode        string             `json:"mode"`
	Strategy    string             `json:"strategy"`
	Idle        int                `json:"idle"`
	BecomeStale int                `json:"becomeStale"`
	BecomeFresh int                `json:"becomeFresh"`
	StayStale   int                `json:"stayStale"`
	StaleAre    advice.StalePolicy `json:"staleAre"`
}

// simulation tells what documents would lead to in one cluster.
type simulation struct {
	// platforms are predictedPlatforms. The first is asked for namespaces, too.
	platforms []simulatedPlatform

	defaults  *crdDefaults
	namespace string
	// forced: the namespace was named on the command line.
	forced bool
}

// simulatedPlatform is what predictions take of a platform.
type simulatedPlatform struct {
	kinds   platform.Kinds
	stored  platform.Stored
	render  func(template *unstructured.Unstructured) (revision.Blueprint, error)
	adviser interface {
		Inputs(obj *unstructured.Unstructured) advice.Inputs
		TemplateChange(ctx context.Context, old, obj *unstructured.Unstructured) (advice.TemplateChange, error)
	}
	// claim predicts what a claim gets. Nobody asks where claims are of no kind.
	claim func(ctx context.Context, claim *unstructured.Unstructured) (advice.Claim, error)
	// refuses: Freshbind has the API server refuse inputs that cannot be read.
	refuses bool
}

// simulatedSources are what predictions are made from.
type simulatedSources struct {
	stored   platform.Stored
	api      client.Reader
	defaults settings.Defaults
}

func newSimulation(o *simulateOptions) (*simulation, error) {
	cfg, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	namespace, forced, err := o.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	getter, err := liveread.NewDynamicGetter(cfg)
	if err != nil {
		return nil, err
	}
	defaults, err := newCRDDefaults(cfg)
	if err != nil {
		return nil, err
	}
	api, err := client.New(cfg, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	of := simulatedSources{
		stored: platform.Stored{Reader: liveread.NewReader(getter, nil)}, api: api,
		defaults: settings.Defaults{Mode: settings.Mode(o.enforcement), Strategy: freshness.Strategy(o.strategy)},
	}
	s := &simulation{defaults: defaults, namespace: namespace, forced: forced}
	for _, p := range predictedPlatforms() {
		if of.stored.Resolver, err = liveread.NewResolver(cfg, p.kinds.Versions...); err != nil {
			return nil, err
		}
		known := p.connect(of)
		known.kinds, known.stored = p.kinds, of.stored
		s.platforms = append(s.platforms, known)
	}
	return s, nil
}

func (s *simulation) of(gr schema.GroupResource) simulatedPlatform {
	for _, p := range s.platforms {
		if slices.ContainsFunc(simulatedKinds(p.kinds), func(k platform.Kind) bool { return k.GroupResource() == gr }) {
			return p
		}
	}
	return s.platforms[0]
}

// simulatedKinds are those of which there is something to tell.
func simulatedKinds(of platform.Kinds) []platform.Kind {
	out := []platform.Kind{of.Template, of.Pool}
	if of.HasClaims() {
		out = append(out, of.Claim)
	}
	return out
}

// simulatedResource returns the resource of a document that there is something
// to tell of.
func simulatedResource(obj *unstructured.Unstructured) (schema.GroupResource, bool) {
	gk := obj.GroupVersionKind().GroupKind()
	for _, p := range predictedPlatforms() {
		for _, k := range simulatedKinds(p.kinds) {
			if k.GroupKind == gk {
				return k.GroupResource(), true
			}
		}
	}
	if gk == (schema.GroupKind{Kind: "Namespace"}) {
		return schema.GroupResource{Resource: "namespaces"}, true
	}
	return schema.GroupResource{}, false
}

// predict compares one document with what is stored. Nothing is written.
func (s *simulation) predict(ctx context.Context, obj *unstructured.Unstructured) (simulated, error) {
	gr, _ := simulatedResource(obj)
	unknown, err := s.complete(gr, obj)
	if err != nil {
		return simulated{}, err
	}
	by := s.of(gr)
	stored, err := by.read(ctx, gr, obj)
	if err != nil {
		return simulated{}, err
	}
	out := simulated{Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName(), Stored: stored != nil, Refused: unknown}
	if len(unknown) > 0 {
		// What it would lead to without them is not what was meant.
		out.Says = "would be refused"
		return out, nil
	}
	by.readInputs(stored, obj, &out)
	switch {
	case gr == by.kinds.Template.GroupResource():
		err = by.predictTemplate(ctx, stored, obj, &out)
	case gr == by.kinds.Claim.GroupResource() && stored != nil:
		out.Says = "is stored already: nothing happens"
	case gr == by.kinds.Claim.GroupResource():
		err = by.predictClaim(ctx, obj, &out)
	default:
		out.Says = "its inputs can be read"
	}
	if len(out.Refused) > 0 {
		out.Says = "would be refused"
	}
	return out, err
}

// complete fills in what the API server would: the namespace, and defaults. It
// returns the fields that the cluster does not know.
func (s *simulation) complete(gr schema.GroupResource, obj *unstructured.Unstructured) (unknown []string, err error) {
	if gr.Group == "" {
		return nil, nil
	}
	switch namespace := obj.GetNamespace(); {
	case namespace == "":
		obj.SetNamespace(s.namespace)
	case s.forced && namespace != s.namespace:
		return nil, fmt.Errorf("metadata.namespace: is %q, and --namespace is %q: leave one of them out", namespace, s.namespace)
	}
	if obj.GetName() == "" && obj.GetGenerateName() == "" {
		return nil, errors.New("metadata.name: required")
	}
	if unknown, err = s.defaults.unknownFields(obj); err != nil {
		return nil, err
	}
	return unknown, s.defaults.apply(obj)
}

func (p simulatedPlatform) read(ctx context.Context, gr schema.GroupResource, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if obj.GetName() == "" {
		return nil, nil
	}
	return p.stored.Get(ctx, gr, obj.GetNamespace(), obj.GetName())
}

// readInputs tells of what an object says to Freshbind and what cannot be read of that.
func (p simulatedPlatform) readInputs(stored, obj *unstructured.Unstructured, out *simulated) {
	before, after := p.inputs(stored), p.inputs(obj)
	for _, err := range advice.Refusals(before, after) {
		if p.refuses {
			out.Refused = append(out.Refused, err.Error())
		} else {
			out.Warnings = append(out.Warnings, "is not refused, but cannot be read: "+err.Error())
		}
	}
	out.Warnings = append(out.Warnings, advice.Ignored(before, after)...)
}

func (p simulatedPlatform) inputs(obj *unstructured.Unstructured) advice.Inputs {
	if obj != nil && obj.GetKind() == "Namespace" {
		return advice.Inputs{Labels: obj.GetLabels()}
	}
	return p.adviser.Inputs(obj)
}

// predictTemplate tells what becomes of the members that are built from an object.
func (p simulatedPlatform) predictTemplate(ctx context.Context, stored, obj *unstructured.Unstructured, out *simulated) error {
	change, err := p.adviser.TemplateChange(ctx, stored, obj)
	if err != nil {
		return err
	}
	out.Before, out.After = change.Before, change.After
	out.Warnings = append(out.Warnings, change.Lines()...)
	for _, pool := range change.Pools {
		mode := settings.Audit
		if pool.Enforced {
			mode = settings.Enforce
		}
		out.Pools = append(out.Pools, simulatedPool{
			Name: pool.Name, Mode: string(mode), Strategy: string(pool.Strategy()), Idle: pool.Idle,
			BecomeStale: pool.BecomeStale, BecomeFresh: pool.BecomeFresh, StayStale: pool.StayStale, StaleAre: pool.StalePolicy(),
		})
	}
	if change.Before == change.After {
		out.Says = "has the content that is stored: nothing becomes stale"
		return nil
	}
	switch lines := change.Lines(); {
	case len(lines) > 0:
		out.Says = lines[0]
	case stored == nil && p.kinds.Template.GroupKind == p.kinds.Pool.GroupKind:
		out.Says = "nothing becomes stale: it has no members yet"
	case len(change.Pools) == 0:
		out.Says = "nothing becomes stale: no pool that wants members refers to it"
	default:
		out.Says = "nothing becomes stale"
	}
	if stored != nil {
		out.Difference, err = p.difference(stored, obj)
	}
	return err
}

// difference names what differs in what members are built from.
func (p simulatedPlatform) difference(stored, obj *unstructured.Unstructured) (string, error) {
	before, err := p.render(stored)
	if err != nil {
		return "", err
	}
	after, err := p.render(obj)
	if err != nil {
		return "", err
	}
	return revision.Summary(revision.Compare(before, after, revision.PathSet{}), simulateDifferences), nil
}

func (p simulatedPlatform) predictClaim(ctx context.Context, obj *unstructured.Unstructured, out *simulated) error {
	claim, err := p.claim(ctx, obj)
	if err != nil {
		return err
	}
	out.Outcome, out.Says = claim.Outcome()
	out.Warnings = claim.Lines()
	return nil
}
