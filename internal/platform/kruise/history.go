package kruise

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
)

// known are the revisions that what is in force has had. What a claim may change of its
// cold start is the same in all of them as in the cold start itself.
func (p *Platform) known(ctx context.Context, w platform.Write, objs stored) ([]freshness.Known, error) {
	recorded, err := p.revisions(ctx, objs.inForce())
	if err != nil {
		return nil, err
	}
	by := ask{}
	if w.Operation == freshness.ColdStart {
		by = objs.asksCold()
	}
	var out []freshness.Known
	for _, r := range recorded {
		k := freshness.Known{Hash: r.Hash, Content: r.Rendered}
		if r.Template != nil {
			if k.Content, err = contentBefore(r, w.New, objs, by); err != nil {
				continue
			}
		}
		out = append(out, k)
	}
	if !objs.refers() {
		return out, nil
	}
	before, err := p.ownRevisions(ctx, objs)
	return append(out, before...), err
}

func (p *Platform) revisions(ctx context.Context, of *unstructured.Unstructured) ([]platform.Recorded, error) {
	recorded, err := p.History.Revisions(ctx, of)
	if err != nil {
		return nil, fmt.Errorf("reading history of %s: %w", of.GetName(), err)
	}
	return recorded, nil
}

// maxOwnRevisions is how many revisions count of a SandboxSet that refers to a template.
const maxOwnRevisions = 10

// ownRevisions is what members have when the SandboxSet had other fields beside its
// reference. They have the Pod in force as long as theirs does not show another one
// (contents). Where only digests are kept nothing is known of that.
func (p *Platform) ownRevisions(ctx context.Context, objs stored) ([]freshness.Known, error) {
	sets, err := p.revisions(ctx, objs.set)
	if err != nil {
		return nil, err
	}
	var out []freshness.Known
	for _, s := range sets[:min(len(sets), maxOwnRevisions)] {
		if s.Template == nil || templateRef(s.Template) != templateRef(objs.set) {
			continue
		}
		if content, err := contentOf(referring(s.Template, objs.template)); err == nil {
			out = append(out, freshness.Known{Hash: s.Hash, Content: content})
		}
	}
	return out, nil
}

// contentBefore is what a revision of what is in force had members built from, as the pool is
// now.
func contentBefore(r platform.Recorded, sandbox *unstructured.Unstructured, objs stored, by ask) (revision.Blueprint, error) {
	switch {
	case objs.refers():
		return contentOf(referring(objs.set, r.Template))
	case by.empty():
		return r.Rendered, nil
	}
	return undone(carried(r.Template, sandbox, by), objs.inForce(), by)
}

// asksCold are what the claim may have changed of its cold start: nothing, where it has no
// object that says so.
func (s stored) asksCold() ask {
	if s.claim == nil {
		return ask{}
	}
	return asked(s.claim)
}

func (a ask) empty() bool { return a.image == "" && len(a.resources) == 0 && !a.unspecified }

// carried returns a template in which the first container has what the claim may have
// changed of its cold start, as far as it did.
func carried(template, sandbox *unstructured.Unstructured, by ask) *unstructured.Unstructured {
	out := template.DeepCopy()
	to, from := firstContainer(out), firstContainer(sandbox)
	if to == nil || from == nil {
		return out
	}
	if image, is := from["image"]; is && by.allowsImage(image) {
		to["image"] = image
	}
	has, _ := from["resources"].(map[string]any)
	for _, list := range []string{"requests", "limits"} {
		amounts, _ := has[list].(map[string]any)
		for name, amount := range amounts {
			if by.allowsAmount(list, name, amount) {
				inner(inner(to, "resources"), list)[name] = amount
			}
		}
	}
	return out
}

// inner is an object in another one, where it is made if need be.
func inner(of map[string]any, key string) map[string]any {
	in, is := of[key].(map[string]any)
	if !is {
		in = map[string]any{}
		of[key] = in
	}
	return in
}
