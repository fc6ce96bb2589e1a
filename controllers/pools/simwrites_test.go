package pools

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
)

// simWrites serves writes.
type simWrites struct {
	client.Client
	*simulation
}

// served decides whether a write is carried out, and whether its sender hears of it.
func (s *simulation) served(verb string, number uint64) (done bool, err error) {
	switch {
	case s.dying && s.chance(50, "dies at "+verb, number):
		return s.chance(50, "dies after "+verb, number), errors.New("connection refused")
	case s.chance(s.failing, verb, number):
		return false, apierrors.NewInternalError(errors.New("etcd is away"))
	case s.chance(s.failing, "slow "+verb, number):
		return s.chance(50, "done "+verb, number), apierrors.NewTimeoutError("no answer in time", 1)
	}
	return true, nil
}

// mayWrite: the emergency brake holds whatever caches show.
func (s *simulation) mayWrite(how string, obj client.Object) {
	if s.audited {
		s.breaks("%s was %s though nothing is enforced", obj.GetName(), how)
	}
}

func (s *simulation) member(name string) *simMember {
	for _, p := range s.pools {
		for _, m := range p.members {
			if m.name == name {
				return m
			}
		}
	}
	return nil
}

func (c simWrites) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var o client.DeleteOptions
	o.ApplyOptions(opts)
	c.mayWrite("deleted", obj)
	m := c.member(obj.GetName())
	if m == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, obj.GetName())
	}
	if c.chance(5, "claimed before", m.number) && m.claimable() {
		c.claim(m)
		return apierrors.NewConflict(schema.GroupResource{}, m.name, errors.New("it is another version by now"))
	}
	if *o.Preconditions.ResourceVersion != m.reduced.ResourceVersion || *o.Preconditions.UID != m.uid {
		return apierrors.NewConflict(schema.GroupResource{}, m.name, errors.New("it is another version by now"))
	}
	if m.kept && !c.calm {
		return apierrors.NewForbidden(schema.GroupResource{}, m.name, errors.New("denied by a webhook"))
	}
	done, err := c.served("delete", m.number)
	if !done {
		return err
	}
	current := m.current()
	judge := func() { c.deleted(m, current) }
	if c.chance(30, "takes time", m.number) {
		if m.leaving {
			return err
		}
		m.leaving = true
		c.written(m, judge)
	} else {
		c.gone(m, judge)
	}
	return err
}

func (c simWrites) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, err := patch.Data(obj)
	if err != nil {
		return err
	}
	var asked struct {
		Metadata struct {
			ResourceVersion     string
			Labels, Annotations map[string]*string
		}
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return err
	}
	c.mayWrite("patched", obj)
	if obj.GetObjectKind().GroupVersionKind() == poolKinds.Pools {
		return c.publish(obj.GetName(), asked.Metadata.Annotations)
	}
	m := c.member(obj.GetName())
	if m == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, obj.GetName())
	}
	if asked.Metadata.ResourceVersion != m.reduced.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{}, m.name, errors.New("it is another version by now"))
	}
	done, err := c.served("patch", m.number)
	if done {
		m.shown = asked.Metadata.Labels[agentsandbox.TemplateRefHashLabel] != nil
		c.written(m, func() {
			c.patched(m)
			c.logf("%s is shown: %t", m.name, m.shown)
		})
	}
	return err
}

func (c simWrites) publish(name string, annotations map[string]*string) error {
	i := slices.IndexFunc(c.pools, func(p *simPool) bool { return p.key.Name == name })
	p := c.pools[i]
	done, err := c.served("publish", uint64(i))
	if !done {
		return err
	}
	next := p.stored.DeepCopy()
	stored := next.GetAnnotations()
	for key, value := range annotations {
		if delete(stored, key); value != nil {
			stored[key] = *value
		}
	}
	next.SetAnnotations(stored)
	c.store(p, next)
	if c.story != nil {
		status, _ := platform.ParseRolloutStatus(stored[settings.RolloutStatusKey])
		c.logf("%s says %s (%s) of %s, admit %q, %d members of %d updated, replacing %+v", name, stored[settings.RolloutStateKey], stored[settings.RolloutReasonKey],
			status.UpdateRevision, p.admit(), status.UpdatedReplicas, p.replicas(), status.Replacing)
	}
	// What follows is later.
	c.end()
	return err
}
