package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/platform"
)

const (
	poolKind     = "pool"
	templateWord = "template"
	memberKind   = "member"
	claimKind    = "claim"
)

// wordsForKinds, each with its plural. A pool that is its own template is a pool.
var wordsForKinds = []struct{ word, plural string }{{poolKind, "pools"}, {templateWord, "templates"}, {memberKind, "members"}, {claimKind, "claims"}}

func kindOf(kinds platform.Kinds, word string) platform.Kind {
	switch word {
	case poolKind:
		return kinds.Pool
	case templateWord:
		return kinds.Template
	case memberKind:
		return kinds.Member
	}
	return kinds.Claim
}

// resourceOf is what a word stands for.
func resourceOf(kinds platform.Kinds, word string) schema.GroupResource {
	return kindOf(kinds, word).GroupResource()
}

// wordFor returns the word for a kind as it was written, with or without its
// group; "" for none of ours.
func wordFor(written string) string {
	for _, p := range commandedPlatforms() {
		kinds := p.objects.Kinds()
		for _, w := range wordsForKinds {
			if isWritten(kindOf(kinds, w.word), written, w.word, w.plural) {
				return w.word
			}
		}
		if isWritten(kinds.SharedTemplate, written) {
			return templateWord
		}
	}
	return ""
}

// isWritten reports whether a kind was written, by one of its names or of these.
func isWritten(kind platform.Kind, written string, names ...string) bool {
	written, group, grouped := strings.Cut(strings.ToLower(written), ".")
	names = slices.Concat(kind.ShortNames, names, []string{strings.ToLower(kind.Kind), kind.Resource})
	return !kind.Empty() && slices.Contains(names, written) && (!grouped || group == kind.Group)
}

// resourceName is what a rollout command is about: a pool, or all pools of a template. kind is
// as it was written.
type resourceName struct{ word, name, kind string }

func (s resourceName) String() string { return s.word + "/" + s.name }

// parseResourceName reads pool/NAME or template/NAME, also as two arguments.
func parseResourceName(args []string) (resourceName, error) {
	const accepted = "accepted are pool/NAME and template/NAME"
	written := strings.Join(args, "/")
	kind, name, ok := strings.Cut(written, "/")
	if !ok || name == "" || strings.Contains(name, "/") {
		return resourceName{}, usage("%q: %s", written, accepted)
	}
	word := wordFor(kind)
	if word != poolKind && word != templateWord {
		return resourceName{}, usage("%q: %q is not a kind that rolls out: %s", written, kind, accepted)
	}
	return resourceName{word, name, kind}, nil
}

func (s resourceName) selection() cli.Selection {
	if s.word == poolKind {
		return cli.Selection{Name: s.name}
	}
	return cli.Selection{Template: s.name}
}

// find judges the pools of the subject. There is at least one.
func (s resourceName) find(ctx context.Context, c *cli.Cluster, namespace string, store *cli.Store) ([]cli.Pool, error) {
	found, err := c.Judge(store).Pools(ctx, s.selection())
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return found, nil
	}
	if s.word == poolKind {
		return nil, fmt.Errorf("pool %q does not exist in namespace %q", s.name, namespace)
	}
	if _, err := c.Template(ctx, namespace, s.name); err != nil {
		return nil, absent(err, templateWord, s.name, namespace)
	}
	return nil, fmt.Errorf("no pool in namespace %q refers to template %q", namespace, s.name)
}

// template reads the template of the subject.
func (s resourceName) template(ctx context.Context, c *cli.Cluster, namespace string) (*unstructured.Unstructured, error) {
	if shared := c.Objects.Kinds().SharedTemplate; isWritten(shared, s.kind) {
		template, err := c.Get(ctx, shared.GroupResource(), namespace, s.name)
		return template, absent(err, templateWord, s.name, namespace)
	}
	if s.word == templateWord {
		template, err := c.Template(ctx, namespace, s.name)
		return template, absent(err, templateWord, s.name, namespace)
	}
	pool, err := c.Get(ctx, c.Objects.Kinds().Pool.GroupResource(), namespace, s.name)
	if err != nil {
		return nil, absent(err, poolKind, s.name, namespace)
	}
	template, err := c.TemplateOf(ctx, pool)
	return template, absent(err, templateWord, c.Objects.Pool(pool).Template, namespace)
}
