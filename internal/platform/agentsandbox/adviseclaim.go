package agentsandbox

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// Claim predicts what a claim that is about to be created gets.
func (a *Adviser) Claim(ctx context.Context, claim *unstructured.Unstructured) (advice.Claim, error) {
	asks := claimOf(claim)
	out := advice.Claim{Pool: asks.Pool, Template: asks.Template, NeedsPool: asks.Template == "", OwnMake: ownMake(claim)}
	var pools []*unstructured.Unstructured
	if asks.Pool != "" {
		pool, err := a.Platform.Get(ctx, Pools, claim.GetNamespace(), asks.Pool)
		if err != nil {
			return advice.Claim{}, err
		}
		if pool == nil || pool.GetDeletionTimestamp() != nil {
			out.PoolGone = true
		} else {
			pools = []*unstructured.Unstructured{pool}
			if out.NeedsPool {
				out.Template = TemplateOf(pool)
			}
		}
	}
	if out.Template == "" {
		return out, nil
	}
	template, err := a.Platform.Get(ctx, Templates, claim.GetNamespace(), out.Template)
	if err != nil {
		return advice.Claim{}, err
	}
	if out.TemplateGone = template == nil; out.TemplateGone {
		return out, nil
	}
	if out.Refused, err = a.refusal(ctx, template, claim); err != nil || out.Refused != "" || len(out.OwnMake) > 0 {
		return out, err
	}
	if asks.AnyPool {
		if pools, err = a.poolsOf(ctx, claim.GetNamespace(), out.Template); err != nil {
			return advice.Claim{}, err
		}
		pools = slices.DeleteFunc(pools, func(p *unstructured.Unstructured) bool {
			return settings.Pool(p.GetAnnotations()).ByName()
		})
	}
	out.Pools, err = a.stocks(ctx, claim.GetNamespace(), pools, template)
	return out, err
}

// ownMake names what makes every release cold-start the claim.
func ownMake(claim *unstructured.Unstructured) []string {
	spec, _ := claim.Object["spec"].(map[string]any)
	var out []string
	for _, key := range []string{"env", "volumeClaimTemplates"} {
		if len(objects(spec, key)) > 0 {
			out = append(out, key)
		}
	}
	return out
}

// alwaysCold reports whether a claim gets no member, whatever the pools have.
func alwaysCold(claim *unstructured.Unstructured) bool {
	asks := claimOf(claim)
	return len(ownMake(claim)) > 0 || asks.Pool == "" && !asks.AnyPool
}

// refusal says why the template gives the claim no sandbox.
func (a *Adviser) refusal(ctx context.Context, template, claim *unstructured.Unstructured) (string, error) {
	done, err := a.Platform.Turns.Take(ctx, claim.GetNamespace())
	if err != nil {
		return "", err
	}
	defer done()
	_, err = renderCold(template, claim)
	var refused *unrenderableError
	if errors.As(err, &refused) {
		return refused.why, nil
	}
	return "", err
}

// stocks counts what the pools have for a claim of this template.
func (a *Adviser) stocks(ctx context.Context, namespace string, pools []*unstructured.Unstructured, template *unstructured.Unstructured,
) ([]advice.Stock, error) {
	if len(pools) == 0 {
		return nil, nil
	}
	in, err := a.setting(ctx, namespace)
	if err != nil {
		return nil, err
	}
	rollouts := make([]advice.Rollout, len(pools))
	choosy := false
	for i, pool := range pools {
		rollouts[i] = a.rollout(pool, in)
		choosy = choosy || !rollouts[i].ServesStale()
	}
	members, err := a.Lister.members(ctx, namespace, pools, choosy)
	if err != nil {
		return nil, err
	}
	done, err := a.Platform.Turns.Take(ctx, namespace)
	if err != nil {
		return nil, err
	}
	defer done()
	current, err := RenderMember(template)
	if err != nil {
		return nil, err
	}
	out := make([]advice.Stock, len(pools))
	for i, pool := range pools {
		out[i] = stock(pool, rollouts[i], members[pool.GetUID()], template.GetName(), current)
	}
	return out, nil
}

func stock(pool *unstructured.Unstructured, rollout advice.Rollout, members []unclaimed, template string, current revision.Blueprint) advice.Stock {
	ready, _, _ := unstructured.NestedInt64(pool.Object, "status", "readyReplicas")
	s := advice.Stock{
		Name: pool.GetName(), Replicas: Replicas(pool), Ready: int(ready), Idle: len(members),
		Strategy: string(rollout.Strategy()),
	}
	injected := settings.Pool(pool.GetAnnotations()).InjectedPaths()
	for _, m := range members {
		fresh, known := m.is(current, injected)
		foreign := m.template != "" && m.template != template
		strict := !rollout.ServesStale()
		switch {
		case !m.shown:
			s.Hidden++
		case foreign && (strict || rollout.Enforced):
			s.Foreign++
		case strict && known && !fresh:
			s.Stale++
		case m.full && !m.ready:
			s.Unready++
		default:
			s.Takeable++
		}
	}
	return s
}
